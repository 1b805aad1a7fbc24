// SPDX-License-Identifier: Apache-2.0
// Apple's server as pushy mocks it: checks each push as Apple documents it, and prints a line of JSON for each.
// Orders by standard input: "token HEX", "any" (every token is good from then on), "expired HEX MS", "away", "back".
//
// pushy verifies signatures in DER. Apple takes what RFC 7518 says, r and s side by side: so a provider of Java's stands in for that algorithm.
import com.eatthepath.pushy.apns.auth.ApnsVerificationKey;
import com.eatthepath.pushy.apns.server.MockApnsServer;
import com.eatthepath.pushy.apns.server.MockApnsServerBuilder;
import com.eatthepath.pushy.apns.server.MockApnsServerListener;
import com.eatthepath.pushy.apns.server.RejectionReason;
import com.eatthepath.pushy.apns.server.ValidatingPushNotificationHandlerFactory;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http2.Http2Headers;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.KeyFactory;
import java.security.InvalidKeyException;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.PublicKey;
import java.security.Security;
import java.security.Signature;
import java.security.SignatureException;
import java.security.SignatureSpi;
import java.security.interfaces.ECPublicKey;
import java.security.spec.X509EncodedKeySpec;
import java.time.Instant;
import java.util.AbstractSet;
import java.util.Base64;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

public class Apns {
    static final Set<String> known = ConcurrentHashMap.newKeySet();
    static volatile boolean any = false;
    static final Set<String> tokens = new AbstractSet<>() {
        public boolean contains(Object token) {
            return any || known.contains(token);
        }

        public int size() {
            return known.size();
        }

        public Iterator<String> iterator() {
            return known.iterator();
        }
    };
    static final Map<String, Instant> expired = new ConcurrentHashMap<>();

    static synchronized void tell(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static String text(CharSequence value) {
        return value == null ? "null" : "\"" + value.toString().replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    static void told(String what, Http2Headers headers, ByteBuf payload, String reason) {
        StringBuilder line = new StringBuilder("{\"what\":\"" + what + "\",\"reason\":" + text(reason) + ",\"headers\":{");
        String comma = "";
        for (Map.Entry<CharSequence, CharSequence> header : headers) {
            line.append(comma).append(text(header.getKey())).append(":").append(text(header.getValue()));
            comma = ",";
        }
        tell(line + "},\"payload\":" + (payload == null ? "null" : payload.toString(StandardCharsets.UTF_8)) + "}");
    }

    static class Listener implements MockApnsServerListener {
        public void handlePushNotificationAccepted(Http2Headers headers, ByteBuf payload) {
            told("accepted", headers, payload, null);
        }

        public void handlePushNotificationRejected(Http2Headers headers, ByteBuf payload, RejectionReason reason, Instant expiry) {
            told("rejected", headers, payload, reason.name());
        }
    }

    public static class SideBySide extends SignatureSpi {
        final Signature signature;

        public SideBySide() throws Exception {
            signature = Signature.getInstance("SHA256withECDSAinP1363Format");
        }

        protected void engineInitVerify(PublicKey key) throws InvalidKeyException {
            signature.initVerify(key);
        }

        protected void engineInitSign(PrivateKey key) throws InvalidKeyException {
            signature.initSign(key);
        }

        protected void engineUpdate(byte b) throws SignatureException {
            signature.update(b);
        }

        protected void engineUpdate(byte[] bytes, int from, int length) throws SignatureException {
            signature.update(bytes, from, length);
        }

        protected byte[] engineSign() throws SignatureException {
            return signature.sign();
        }

        protected boolean engineVerify(byte[] bytes) throws SignatureException {
            return signature.verify(bytes);
        }

        protected void engineSetParameter(String name, Object value) {
            throw new UnsupportedOperationException();
        }

        protected Object engineGetParameter(String name) {
            throw new UnsupportedOperationException();
        }
    }

    static class Jws extends Provider {
        Jws() {
            super("Jws", "1", "ES256");
            put("Signature.SHA256withECDSA", SideBySide.class.getName());
        }
    }

    // CERTIFICATE KEY PORT PUBLIC_KEY(base64 DER) KEY_ID TEAM_ID TOPIC
    public static void main(String[] args) throws Exception {
        Security.insertProviderAt(new Jws(), 1);
        ECPublicKey key = (ECPublicKey) KeyFactory.getInstance("EC")
            .generatePublic(new X509EncodedKeySpec(Base64.getDecoder().decode(args[3])));
        ApnsVerificationKey verification = new ApnsVerificationKey(args[4], args[5], key);
        ValidatingPushNotificationHandlerFactory handlers = new ValidatingPushNotificationHandlerFactory(
            Map.of(args[6], tokens), expired, Map.of(args[4], verification), Map.of(verification, Set.of(args[6])));
        MockApnsServer server = null;
        String order = "back";
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (; order != null; order = orders.readLine()) {
            String[] words = order.split(" ");
            if (words[0].equals("token")) {
                known.add(words[1]);
            } else if (words[0].equals("any")) {
                any = true;
            } else if (words[0].equals("expired")) {
                expired.put(words[1], Instant.ofEpochMilli(Long.parseLong(words[2])));
            } else if (words[0].equals("away")) {
                server.shutdown().get();
            } else if (words[0].equals("back")) {
                server = new MockApnsServerBuilder().setServerCredentials(new File(args[0]), new File(args[1]), null)
                    .setUseAlpn(true).setHandlerFactory(handlers).setListener(new Listener()).build();
                server.start(Integer.parseInt(args[2])).get();
            }
            tell("{\"what\":\"" + words[0] + "\"}");
        }
        System.exit(0);
    }
}
