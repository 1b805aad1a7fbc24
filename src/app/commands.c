// SPDX-License-Identifier: Apache-2.0
// The subcommands check and admin.
#include "app/commands.h"

#include "api/api.h"
#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "base/loop.h"
#include "cache/pipeline.h"
#include "call/internal_request.h"
#include "parts.h"
#include "store/session.h"
#include "unread/keys.h"

#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { CHECK_TIMEOUT_S = 3, LINES_MAX = 1000 };

// Connects to "host:port"; an empty host means this machine. Returns a descriptor, or -1.
static int check_connect(const char *listen_address)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const struct timeval timeout = {.tv_sec = CHECK_TIMEOUT_S};
    struct addrinfo *found = NULL;
    char host[256];
    const char *colon = strrchr(listen_address, ':');
    int fd = -1;

    // IPv6 addresses are in brackets.
    bool is_v6 = listen_address[0] == '[' && colon[-1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(colon - listen_address) - 2 * is_v6,
             listen_address + is_v6);
    const char *address = host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1" : host;
    if (getaddrinfo(address, colon + 1, &hints, &found) != 0)
        return -1;
    fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    }
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) < 0) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

int command_check(const struct settings *settings)
{
    static const char request[] =
        "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char reply[4096];
    size_t length = 0;
    ssize_t more = 1;
    int fd = check_connect(settings->listen);

    if (fd < 0 || write(fd, request, strlen(request)) < 0) {
        fprintf(stderr, "check: nothing answers at %s\n", settings->listen);
        if (fd >= 0)
            close(fd);
        return EXIT_FAILURE;
    }
    while (more > 0 && length < sizeof reply - 1) {
        more = read(fd, reply + length, sizeof reply - 1 - length);
        length += more > 0 ? (size_t)more : 0;
    }
    close(fd);
    reply[length] = '\0';
    const char *body = strstr(reply, "\r\n\r\n");
    printf("%s\n", body ? body + 4 : "");
    return strncmp(reply, "HTTP/1.1 200", 12) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Consecutive admin calls on a loop of their own, without a server.
struct administration {
    uint32_t tag;
    char method[100];
    int count; // arguments: name=value
    char *const *arguments;
    FILE *lines;       // members of the list `users`; NULL: a single call without them
    int64_t line;      // lines read so far
    bool has_failures; // at least one line failed
    const struct settings *settings;
    struct secrets secrets;
    struct pipeline *pipeline; // for notifying instances; NULL until needed
    struct loop *loop;
    struct store *store;
    struct api *api;
    struct request *request;
    int exit_code;
};

static int admin_prepare(struct administration *administration);
static void admin_call(void *arg);

// Prints the result of each line.
static void results_print(struct administration *administration, const json_t *results)
{
    size_t index;
    json_t *result;

    json_array_foreach(results, index, result)
    {
        CLEANUP_FREE char *text = json_dumps(result, JSON_COMPACT);
        printf("%s\n", text ? text : "");
        if (json_object_get(result, "error"))
            administration->has_failures = true;
    }
}

// Starts the call for the next lines. False: no lines left, or invalid input.
static bool lines_advance(struct administration *administration)
{
    int r = admin_prepare(administration);

    if (r < 0)
        administration->has_failures = true;
    if (r <= 0)
        return false;
    admin_call(administration);
    return true;
}

static void admin_replied(void *arg, const struct request_outcome *outcome)
{
    struct administration *administration = CAST(administration, arg);
    bool ok = outcome->error[0] == '\0';
    CLEANUP_JSON json_t *object =
        administration->lines && ok ? json_loadb(outcome->reply, outcome->length, 0, NULL) : NULL;

    if (object)
        results_print(administration, json_object_get(object, "results"));
    else
        printf("%.*s\n", (int)outcome->length, outcome->reply);
    if (object && lines_advance(administration))
        return;
    administration->exit_code = ok && !administration->has_failures ? EXIT_SUCCESS : EXIT_FAILURE;
    loop_stop(administration->loop);
}

// -ERROR_INVALID_ARGUMENTS: no such workspace.
static int workspace_find(const struct settings *settings, const char *id)
{
    static const struct statement find = {"admin_workspace",
                                          "SELECT 1 FROM workspaces WHERE id = $1"};
    CLEANUP_RESULT struct result *result = NULL;
    struct session *session;
    struct params params = {0};

    int r = session_new(settings->database_url, settings->statement_timeout_ms, &session);
    if (r < 0)
        return r;
    params_text(&params, id);
    r = session_call(session, &find, &params, &result);
    if (r >= 0 && result_rows(result) == 0)
        r = -ERROR_INVALID_ARGUMENTS;
    session_free(session);
    return r;
}

// Instances find the row in the outbox.
static void on_change_committed(void *arg, const char *outbox_id)
{
    (void)arg;
    (void)outbox_id;
}

// Instances that miss the message while Redis is down look tokens up again by themselves.
static void on_session_changed(void *arg, const char *id)
{
    struct administration *administration = CAST(administration, arg);
    const struct cache_options options = parts_cache_options(administration->settings);
    const char *texts[] = {"SPUBLISH", KEY_SESSION_TOPIC, id};

    if (!administration->pipeline && pipeline_new(&options, &administration->pipeline) < 0)
        return;
    pipeline_add(administration->pipeline, 3, texts, NULL);
    if (pipeline_run(administration->pipeline, NULL, NULL) < 0)
        fprintf(stderr,
                "admin: Redis is down: instances will see the change a few seconds later\n");
}

static void admin_call(void *arg)
{
    struct administration *administration = CAST(administration, arg);
    const struct actor *actor = request_actor(administration->request);

    int r = actor->type == 'o' ? 0 : workspace_find(administration->settings, actor->workspace_id);
    if (r == -ERROR_INVALID_ARGUMENTS)
        request_reply_error_message(administration->request, r,
                                    "workspace: must be the id of a workspace");
    else if (r < 0)
        request_reply_error(administration->request, r);
    else
        api_call(administration->api, administration->request);
}

// Converts name=value … to a JSON object. NULL: an argument has no '=', or is not UTF-8.
static json_t *arguments_object(int count, char *const *arguments)
{
    json_t *object = json_object();

    for (int i = 0; i < count; i++) {
        char *equals = strchr(arguments[i], '=');
        if (!equals || json_object_setn_new(object, arguments[i], (size_t)(equals - arguments[i]),
                                            json_string(equals + 1)) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

// Reads the next lines, one JSON value each, into an array; empty at the end. NULL: a line was
// invalid, and an error was printed.
static json_t *lines_take(struct administration *administration)
{
    CLEANUP_FREE char *line = NULL;
    size_t size = 0;
    json_t *array = json_array();

    while (json_array_size(array) < LINES_MAX &&
           getline(&line, &size, administration->lines) >= 0) {
        administration->line++;
        if (line[strspn(line, " \t\r\n")] == '\0')
            continue;
        if (json_array_append_new(array, json_loads(line, JSON_DECODE_ANY, NULL)) < 0) {
            fprintf(stderr, "admin: line %" PRId64 " is not JSON\n", administration->line);
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

// Whoever has access to the database acts as an admin of every workspace, and as the operator.
static void admin_actor(struct actor *actor, const char *method, int count, char *const *arguments)
{
    static const char workspace[] = "workspace=";

    actor->type = strcmp(method, "admin.workspaces.create") == 0 ? 'o' : 'u';
    actor->is_admin = true;
    for (int i = 0; i < count; i++)
        if (strncmp(arguments[i], workspace, strlen(workspace)) == 0)
            snprintf(actor->workspace_id, sizeof actor->workspace_id, "%s",
                     arguments[i] + strlen(workspace));
}

static int admin_run(struct administration *administration, const struct settings *settings)
{
    const struct store_options store_options = parts_store_options(settings);
    struct api_options api_options = {
        .settings =
            {
                .public_url = "",
                .operator_token = "",
                .rate_limits = "",
                .text_max = settings->text_max,
            },
        .secrets = &administration->secrets,
        .on_committed = on_change_committed,
        .on_session_changed = on_session_changed,
        .arg = administration,
    };

    parts_secrets(settings, &administration->secrets);
    int r = parts_check_database(settings);
    if (r < 0)
        return r;
    r = loop_new(&administration->loop);
    if (r < 0)
        return r;
    r = store_new(administration->loop, &store_options, &administration->store);
    if (r < 0)
        return r;
    api_options.store = administration->store;
    r = api_new(administration->loop, &api_options, &administration->api);
    if (r < 0)
        return r;
    r = loop_post(administration->loop, admin_call, administration);
    if (r < 0)
        return r;
    loop_run(administration->loop);
    return 0;
}

// Prepares the next request. 1: done; 0: no lines left.
static int admin_prepare(struct administration *administration)
{
    CLEANUP_JSON json_t *object =
        arguments_object(administration->count, administration->arguments);
    json_t *users = administration->lines ? lines_take(administration) : NULL;

    if (!object || (administration->lines && !users)) {
        json_decref(users);
        return -ERROR_INVALID_ARGUMENTS;
    }
    if (users) {
        bool is_end = json_array_size(users) == 0;
        json_object_set_new(object, "users", users);
        if (is_end)
            return 0;
    }
    CLEANUP_FREE char *json = json_dumps(object, JSON_COMPACT);
    if (!json)
        return -ERROR_MEMORY;
    struct request *request = NULL;
    int r = request_new(administration->method, "", admin_replied, administration, &request);
    if (r >= 0)
        r = request_add_json(request, json, strlen(json));
    if (r < 0) {
        request_drop(request);
        return r;
    }
    administration->request = request;
    admin_actor(request_actor(administration->request), administration->method,
                administration->count, administration->arguments);
    return 1;
}

static bool admin_method(struct administration *administration, const char *name)
{
    snprintf(administration->method, sizeof administration->method, "%s%s",
             strncmp(name, "admin.", 6) == 0 ? "" : "admin.", name);
    return api_has_method(administration->method);
}

void command_admin_usage(FILE *out)
{
    fputs(
        "usage: tidings admin METHOD [workspace=T…] [name=value …] [-]\n"
        "\n"
        "  workspaces.create  name= domain=\n"
        "  users.create       workspace= name= [real_name= email= is_admin= is_bot=]\n"
        "  users.createMany   workspace= users= or -\n"
        "  users.list         workspace= [limit= cursor=]\n"
        "  users.setActive    workspace= user_id= active=\n"
        "  users.update       workspace= user_id= [name= real_name= email= image_url= is_admin=\n"
        "                     provider= external_id=]\n"
        "  users.revokeTokens workspace= user_id= [issued_before=]\n"
        "  channels.addMembers workspace= channel= users= or -\n"
        "  tokens.create      workspace= user_id= [type= scopes= expires_in= rate_limit=]\n"
        "  tokens.list        workspace= user_id=\n"
        "  tokens.revoke      workspace= token_id= or revoke_token=\n"
        "  apps.create        workspace= name= bot_user_id= [events_url= events=\n"
        "                     signing_secret=]\n"
        "  apps.delete        workspace= app_id=\n"
        "  webhooks.create    workspace= channel= name= [icon_url= | icon_emoji=]\n"
        "  webhooks.list      workspace=\n"
        "  webhooks.delete    workspace= webhook_id=\n"
        "  emoji.add          workspace= name= [url= | alias_for=]\n"
        "  emoji.remove       workspace= name=\n"
        "  pushApps.create    workspace= name= platform= [key= key_id= team_id= topic=\n"
        "                     environment= | service_account= | subject=]\n"
        "  pushApps.list      workspace=\n"
        "  pushApps.update    workspace= name= [key= key_id= team_id= topic= environment= |\n"
        "                     service_account= | subject=]\n"
        "  pushApps.delete    workspace= name=\n"
        "  auth.providers.create workspace= name= kind= issuer= audience= secret= | keys=\n"
        "                     [algs= user_claim= name_claim= email_claim= provision=\n"
        "                     update_profile= max_lifetime_s= leeway_s= scopes=]\n"
        "  auth.providers.list workspace=\n"
        "  auth.providers.update workspace= name= [issuer= audience= secret= | keys= algs=\n"
        "                     user_claim= name_claim= email_claim= provision=\n"
        "                     update_profile= max_lifetime_s= leeway_s= scopes=]\n"
        "  auth.providers.delete workspace= name=\n"
        "\n"
        "Calls an admin.* method on the database, without an instance. workspace= is the id of\n"
        "the workspace. Prints the reply; exits with 0 if it is ok, otherwise with 1. /docs of a\n"
        "running server describes the arguments.\n"
        "\n"
        "With -, reads users= from standard input, one JSON value per line: {\"name\":…} for\n"
        "users.createMany, \"U…\" for channels.addMembers; any number, in calls of 1,000. Prints\n"
        "one result per line; exits with 1 if any failed.\n",
        out);
}

int command_admin(const struct settings *settings, int count, char *const *arguments)
{
    bool reads = count > 1 && strcmp(arguments[count - 1], "-") == 0;
    struct administration administration = {.tag = TAG(administration),
                                            .settings = settings,
                                            .count = count - 1 - reads,
                                            .arguments = arguments + 1,
                                            .lines = reads ? stdin : NULL,
                                            .exit_code = EXIT_FAILURE};

    int r = count >= 1 && admin_method(&administration, arguments[0])
                ? admin_prepare(&administration)
                : -ERROR_INVALID_ARGUMENTS;
    if (r < 0) {
        command_admin_usage(stderr);
        return 2;
    }
    if (r == 0) // no lines
        return EXIT_SUCCESS;
    r = admin_run(&administration, settings);
    if (r < 0)
        fprintf(stderr, "admin: %s\n", error_code(r));
    store_free(administration.store);
    api_free(administration.api);
    loop_free(administration.loop);
    pipeline_free(administration.pipeline);
    return administration.exit_code;
}
