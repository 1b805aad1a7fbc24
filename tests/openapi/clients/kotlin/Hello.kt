// SPDX-License-Identifier: Apache-2.0
// openapi-generator generate -g kotlin -i http://127.0.0.1:8080/openapi-3.0.json -o client
import okhttp3.OkHttpClient
import org.openapitools.client.apis.ChannelsApi
import org.openapitools.client.apis.ChatApi
import org.openapitools.client.apis.UnreadApi
import org.openapitools.client.infrastructure.ClientError
import org.openapitools.client.infrastructure.ClientException
import org.openapitools.client.infrastructure.Serializer
import org.openapitools.client.models.ChannelsHistoryRequest
import org.openapitools.client.models.ChannelsInfoRequest
import org.openapitools.client.models.ChatPostMessageRequest
import org.openapitools.client.models.ProblemReply
import org.openapitools.client.models.UnreadSyncRequest

fun main() {
    val api = System.getenv("API")
    val channel = System.getenv("CHANNEL")
    val http = OkHttpClient.Builder().addInterceptor { chain ->
        chain.proceed(chain.request().newBuilder()
            .header("Authorization", "Bearer " + System.getenv("TOKEN"))
            .header("X-Tidings-Errors", "http").build())
    }.build()
    val channels = ChannelsApi(api, http)

    val posted = ChatApi(api, http).chatPostMessage(ChatPostMessageRequest(channel = channel, text = "Hello from Kotlin"))
    println("posted ${posted.message?.text}")

    val info = channels.channelsInfo(ChannelsInfoRequest(channel = channel)).channel
    println("info ${info?.id} ${info?.unreadCount}")

    for (row in UnreadApi(api, http).unreadSync(UnreadSyncRequest()).channels.orEmpty()) {
        if (row.id == channel) println("sync ${row.id} ${row.unreadCount}")
    }

    var cursor: String? = null
    repeat(2) {
        val page = channels.channelsHistory(ChannelsHistoryRequest(channel = channel, limit = 1, cursor = cursor))
        println("history ${page.messages?.first()?.text}")
        cursor = page.responseMetadata?.nextCursor
    }

    try {
        channels.channelsInfo(ChannelsInfoRequest(channel = "C0000000000"))
    } catch (refused: ClientException) {
        val body = (refused.response as ClientError<*>).body as String
        val problem = Serializer.moshi.adapter(ProblemReply::class.java).fromJson(body)
        println("error ${refused.statusCode} ${problem?.error}")
    }
}
