// SPDX-License-Identifier: Apache-2.0
// Slack's SDK for Java, from one part of it to the next. Each tells what it saw, in the SDK's own types, as a line of JSON.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.slack.api.Slack;
import com.slack.api.SlackConfig;
import com.slack.api.app_backend.SlackSignature;
import com.slack.api.methods.MethodsClient;
import com.slack.api.methods.SlackApiException;
import com.slack.api.methods.SlackApiTextResponse;
import com.slack.api.model.Conversation;
import com.slack.api.model.ConversationType;
import com.slack.api.model.Message;
import com.slack.api.model.block.Blocks;
import com.slack.api.model.block.SectionBlock;
import com.slack.api.model.block.composition.BlockCompositions;
import com.slack.api.model.event.MessageEvent;
import com.slack.api.rtm.RTMEventHandler;
import com.slack.api.rtm.RTMEventsDispatcherFactory;
import com.slack.api.socket_mode.SocketModeClient;
import com.slack.api.socket_mode.response.AckResponse;
import com.sun.net.httpserver.HttpServer;

public class Tour {
    static final Gson GSON = new Gson();
    static final Map<String, String> GIVEN = System.getenv();
    static final String CHANNEL = GIVEN.get("CHANNEL");
    static Slack slack;
    static MethodsClient ann;
    static MethodsClient bob;

    public static void main(String[] arguments) throws Exception {
        var config = new SlackConfig();
        config.setMethodsEndpointUrlPrefix(GIVEN.get("API"));
        slack = Slack.getInstance(config);
        ann = slack.methods(GIVEN.get("TOKEN"));
        bob = slack.methods(GIVEN.get("BOB_TOKEN"));
        events();
        messages();
        conversations();
        people();
        limits();
        rtm();
        for (var backend : SocketModeClient.Backend.values()) {
            socketMode(backend);
        }
        tell("end");
        System.exit(0); // threads of the SDK would keep it
    }

    static void tell(String what, Object... named) {
        var line = new LinkedHashMap<String, Object>(Map.of("what", what));
        for (int i = 0; i < named.length; i += 2) {
            line.put((String) named[i], named[i + 1]);
        }
        System.out.println(GSON.toJson(line));
    }

    static <T extends SlackApiTextResponse> T ok(T reply) {
        if (!reply.isOk()) {
            throw new IllegalStateException(reply.toString());
        }
        return reply;
    }

    static <T> T next(BlockingQueue<T> queue) throws InterruptedException {
        return next(queue, any -> true);
    }

    /** The first that is wanted: what was posted before may still be on its way. */
    static <T> T next(BlockingQueue<T> queue, Predicate<T> isWanted) throws InterruptedException {
        while (true) {
            var next = queue.poll(30, TimeUnit.SECONDS);
            if (next == null) {
                throw new IllegalStateException("nothing came");
            }
            if (isWanted.test(next)) {
                return next;
            }
        }
    }

    /** Its part of the Events API: an address that takes the challenge, and only what is signed. */
    static void events() throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        tell("listening", "port", server.getAddress().getPort());
        var secret = new BufferedReader(new InputStreamReader(System.in)).readLine(); // made with the address
        var verifier = new SlackSignature.Verifier(new SlackSignature.Generator(secret));
        var heard = new LinkedBlockingQueue<JsonObject>();
        server.createContext("/", exchange -> {
            var body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            var headers = exchange.getRequestHeaders();
            boolean isSigned = verifier.isValid(headers.getFirst("X-Slack-Request-Timestamp"), body,
                    headers.getFirst("X-Slack-Signature"));
            var event = GSON.fromJson(body, JsonObject.class);
            if (isSigned) {
                heard.add(event);
            }
            var challenge = event.get("challenge");
            var answer = (challenge == null ? "" : challenge.getAsString()).getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(isSigned ? 200 : 401, answer.length == 0 ? -1 : answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
        next(heard, event -> event.get("type").getAsString().equals("url_verification"));
        JsonObject event = null;
        while (event == null) { // until its answer to the challenge is known, an address gets nothing
            ok(ann.chatPostMessage(r -> r.channel(CHANNEL).text("for an address")));
            event = heard.poll(200, TimeUnit.MILLISECONDS);
        }
        tell("event", "text", event.getAsJsonObject("event").get("text").getAsString());
        server.stop(0);
    }

    static void messages() throws Exception {
        var me = ok(ann.authTest(r -> r));
        tell("me", "user", me.getUserId(), "team", me.getTeamId());
        var section = Blocks.section(s -> s.text(BlockCompositions.markdownText("*hello*")));
        var metadata = Message.Metadata.builder().eventType("made").eventPayload(Map.of("n", "1")).build();
        var root = ok(ann.chatPostMessage(
                r -> r.channel(CHANNEL).text("é & <x> 😀").blocks(List.of(section)).metadata(metadata)));
        var reply = ok(bob.chatPostMessage(
                r -> r.channel(CHANNEL).threadTs(root.getTs()).text("reply").replyBroadcast(true)));
        var changed = ok(bob.chatUpdate(r -> r.channel(CHANNEL).ts(reply.getTs()).text("changed")));
        tell("changed", "by", changed.getMessage().getEdited().getUser(), "text", changed.getText());
        var gone = ok(ann.chatPostMessage(r -> r.channel(CHANNEL).text("gone")));
        ok(ann.chatDelete(r -> r.channel(CHANNEL).ts(gone.getTs())));
        tell("gone", "error", ann.chatDelete(r -> r.channel(CHANNEL).ts(gone.getTs())).getError());

        var history = ok(bob.conversationsHistory(r -> r.channel(CHANNEL).limit(2).includeAllMetadata(true)));
        var message = history.getMessages().get(1);
        tell("message", "text", message.getText(), "metadata", message.getMetadata().getEventPayload(),
                "block", ((SectionBlock) message.getBlocks().get(0)).getText().getText(),
                "replies", message.getReplyCount(), "latest", message.getLatestReply().equals(reply.getTs()));
        var thread = ok(bob.conversationsReplies(r -> r.channel(CHANNEL).ts(root.getTs())));
        tell("thread", "texts", thread.getMessages().stream().map(Message::getText).toList());
        var info = ok(bob.conversationsInfo(r -> r.channel(CHANNEL).includeNumMembers(true))).getChannel();
        ok(bob.conversationsMark(r -> r.channel(CHANNEL).ts(reply.getTs())));
        var marked = ok(bob.conversationsInfo(r -> r.channel(CHANNEL))).getChannel();
        tell("unread", "before", info.getUnreadCount(), "after", marked.getUnreadCount(),
                "read", marked.getLastRead().equals(reply.getTs()), "members", info.getNumOfMembers());
        tell("refused", "error", bob.conversationsMark(r -> r.channel(CHANNEL).ts("x")).getError());
    }

    static void conversations() throws Exception {
        var made = ok(ann.conversationsCreate(r -> r.name("made-in-java"))).getChannel();
        tell("taken", "error", ann.conversationsCreate(r -> r.name("made-in-java")).getError());
        var people = List.of(GIVEN.get("BOB"));
        ok(ann.conversationsInvite(r -> r.channel(made.getId()).users(people)));
        var again = ann.conversationsInvite(r -> r.channel(made.getId()).users(people));
        tell("invited", "error", again.getError(), "errors", again.getErrors());
        ok(ann.conversationsSetTopic(r -> r.channel(made.getId()).topic("a topic")));
        ok(ann.conversationsRename(r -> r.channel(made.getId()).name("made-anew")));
        ok(bob.conversationsLeave(r -> r.channel(made.getId())));
        ok(bob.conversationsJoin(r -> r.channel(made.getId())));
        var info = ok(bob.conversationsInfo(r -> r.channel(made.getId()))).getChannel();
        tell("channel", "name", info.getName(), "topic", info.getTopic().getValue(), "creator", info.getCreator());
        var open = ok(ann.conversationsOpen(r -> r.users(people).returnIm(true))).getChannel();
        tell("im", "user", open.getUser(), "is", open.isIm());
        var types = List.of(ConversationType.PUBLIC_CHANNEL, ConversationType.IM);
        var ids = new ArrayList<String>();
        String cursor = null;
        do { // page by page
            final var after = cursor;
            var page = ok(ann.conversationsList(r -> r.types(types).limit(1).cursor(after)));
            page.getChannels().stream().map(Conversation::getId).forEach(ids::add);
            cursor = page.getResponseMetadata().getNextCursor();
        } while (!cursor.isEmpty());
        tell("list", "all", ids.size() == 3 && ids.containsAll(List.of(CHANNEL, made.getId(), open.getId())));
    }

    static void people() throws Exception {
        var user = ok(ann.usersInfo(r -> r.user(GIVEN.get("BOB")))).getUser();
        tell("user", "id", user.getId(), "name", user.getName(), "bot", user.isBot());
        var ids = ok(ann.conversationsMembers(r -> r.channel(CHANNEL))).getMembers();
        var users = ok(ann.usersList(r -> r.limit(100))).getMembers();
        tell("users", "known", users.stream().map(u -> u.getId()).toList().containsAll(ids));
    }

    static void limits() throws Exception {
        var token = GIVEN.get("LIMITED_TOKEN");
        try {
            for (int i = 0; i < 100; i++) {
                slack.methods(token).authTest(r -> r);
            }
        } catch (SlackApiException limited) {
            tell("limited", "error", limited.getError().getError(), "status", limited.getResponse().code(),
                    "wait", limited.getResponse().header("Retry-After"));
        }
        var queued = new ArrayList<CompletableFuture<?>>();
        for (int i = 0; i < 2; i++) { // it waits, and goes on
            queued.add(slack.methodsAsync(token).chatPostMessage(r -> r.channel(CHANNEL).text("late")).thenApply(Tour::ok));
        }
        CompletableFuture.allOf(queued.toArray(CompletableFuture[]::new)).get(30, TimeUnit.SECONDS);
    }

    static void rtm() throws Exception {
        var frames = new LinkedBlockingQueue<JsonObject>();
        var messages = new LinkedBlockingQueue<MessageEvent>();
        var dispatcher = RTMEventsDispatcherFactory.getInstance();
        dispatcher.register(new RTMEventHandler<MessageEvent>() {
            @Override
            public void handle(MessageEvent event) {
                messages.add(event);
            }
        });
        try (var client = slack.rtmConnect(GIVEN.get("TOKEN"))) {
            client.addMessageHandler(text -> frames.add(GSON.fromJson(text, JsonObject.class)));
            client.addMessageHandler(dispatcher.toMessageHandler());
            client.connect();
            tell("rtm hello", "type", next(frames).get("type").getAsString(), "me", client.getConnectedBotUser().getId());
            client.sendMessage(com.slack.api.rtm.message.Message.builder().id(1L).channel(CHANNEL).text("by RTM").build()
                    .toJSONString());
            tell("rtm ack", "frame", next(frames, frame -> frame.has("reply_to")));
            ok(bob.chatPostMessage(r -> r.channel(CHANNEL).text("for RTM")));
            tell("rtm message", "text", next(messages, event -> event.getText().equals("for RTM")).getText());
        }
    }

    static void socketMode(SocketModeClient.Backend backend) throws Exception {
        var frames = new LinkedBlockingQueue<JsonObject>();
        var texts = new LinkedBlockingQueue<String>();
        try (var client = slack.socketMode(GIVEN.get("APP_TOKEN"), backend)) {
            client.addWebSocketMessageListener(text -> frames.add(GSON.fromJson(text, JsonObject.class)));
            client.addEventsApiEnvelopeListener(envelope -> {
                client.sendSocketModeResponse(AckResponse.builder().envelopeId(envelope.getEnvelopeId()).build());
                var event = envelope.getPayload().getAsJsonObject().getAsJsonObject("event");
                texts.add(event.get("text").getAsString());
            });
            client.connect();
            next(frames, frame -> frame.get("type").getAsString().equals("hello")); // connect() does not wait for it
            var wanted = "for " + backend;
            ok(ann.chatPostMessage(r -> r.channel(CHANNEL).text(wanted)));
            tell("socket mode", "backend", backend.name(), "text", next(texts, wanted::equals), "alive", client.verifyConnection());
        }
    }
}
