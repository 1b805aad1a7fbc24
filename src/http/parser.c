// SPDX-License-Identifier: Apache-2.0
// A thread that parses large bodies, so that no loop stops for one.
#include "parser.h"

#include "base/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

// Large bodies get the time that loops and Postgres leave, where cores are short.
enum { PARSER_NICE = 15 };

enum { TELL_AGAIN_US = 1000 };

struct parser {
    struct loop *loop;
    pthread_t thread;
    pthread_mutex_t lock; // of all that follows
    pthread_cond_t filled;
    struct list waiting;
    struct list done;
    bool stopped;
};

static void jobs_end(struct list *jobs, int r)
{
    LIST_FOREACH(link, jobs)
    {
        struct parser_job *job = LIST_ITEM(link, struct parser_job, link);
        list_remove(link);
        job->done(job, r);
    }
}

static void done_call(void *arg)
{
    struct parser *parser = arg;
    struct list done;
    list_init(&done);
    pthread_mutex_lock(&parser->lock);
    list_append_all(&done, &parser->done);
    pthread_mutex_unlock(&parser->lock);
    jobs_end(&done, 0);
}

// Under the lock, which is let go of meanwhile. While the loop's inbox takes nothing more, it is
// tried again: somebody waits for the answer.
static void done_tell(struct parser *parser)
{
    int r;

    do {
        pthread_mutex_unlock(&parser->lock);
        r = loop_post(parser->loop, done_call, parser);
        if (r < 0)
            (void)usleep(TELL_AGAIN_US);
        pthread_mutex_lock(&parser->lock);
    } while (r < 0 && !parser->stopped);
}

static void job_run(struct parser *parser, struct parser_job *job)
{
    list_remove(&job->link);
    pthread_mutex_unlock(&parser->lock);
    job->run(job);
    pthread_mutex_lock(&parser->lock);
    list_append(&parser->done, &job->link);
    done_tell(parser);
}

static void *parser_run(void *arg)
{
    struct parser *parser = arg;
    (void)!setpriority(PRIO_PROCESS, 0, PARSER_NICE); // of this thread alone
    pthread_mutex_lock(&parser->lock);
    while (!parser->stopped) {
        if (list_is_empty(&parser->waiting))
            pthread_cond_wait(&parser->filled, &parser->lock);
        else
            job_run(parser, LIST_ITEM(parser->waiting.next, struct parser_job, link));
    }
    pthread_mutex_unlock(&parser->lock);
    return NULL;
}

int parser_new(struct loop *loop, struct parser **ret_parser)
{
    struct parser *parser = calloc(1, sizeof *parser);
    if (!parser)
        return -ERROR_MEMORY;
    parser->loop = loop;
    pthread_mutex_init(&parser->lock, NULL);
    pthread_cond_init(&parser->filled, NULL);
    list_init(&parser->waiting);
    list_init(&parser->done);
    if (pthread_create(&parser->thread, NULL, parser_run, parser) != 0) {
        free(parser);
        return -ERROR_MEMORY;
    }
    *ret_parser = parser;
    return 0;
}

void parser_add(struct parser *parser, struct parser_job *job)
{
    pthread_mutex_lock(&parser->lock);
    list_append(&parser->waiting, &job->link);
    pthread_cond_signal(&parser->filled);
    pthread_mutex_unlock(&parser->lock);
}

void parser_free(struct parser *parser)
{
    if (!parser)
        return;
    pthread_mutex_lock(&parser->lock);
    parser->stopped = true;
    pthread_cond_signal(&parser->filled);
    pthread_mutex_unlock(&parser->lock);
    pthread_join(parser->thread, NULL);
    jobs_end(&parser->done, -ERROR_UNAVAILABLE);
    jobs_end(&parser->waiting, -ERROR_UNAVAILABLE);
    pthread_cond_destroy(&parser->filled);
    pthread_mutex_destroy(&parser->lock);
    free(parser);
}
