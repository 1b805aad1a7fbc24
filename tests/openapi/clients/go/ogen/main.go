// SPDX-License-Identifier: Apache-2.0
// ogen -target tidings -package tidings openapi-3.0.json, as a server has it
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"example/ogen/tidings"
)

type tokens struct{}

func (tokens) BearerAuth(context.Context, tidings.OperationName) (tidings.BearerAuth, error) {
	return tidings.BearerAuth{Token: os.Getenv("TOKEN")}, nil
}

func (tokens) OperatorToken(context.Context, tidings.OperationName) (tidings.OperatorToken, error) {
	return tidings.OperatorToken{}, nil
}

type statuses struct{}

func (statuses) Do(request *http.Request) (*http.Response, error) {
	request.Header.Set("X-Tidings-Errors", "http")
	return http.DefaultClient.Do(request)
}

func must[T any](reply T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return reply
}

func main() {
	ctx, channel := context.Background(), os.Getenv("CHANNEL")
	client := must(tidings.NewClient(os.Getenv("API"), tokens{}, tidings.WithClient(statuses{})))

	text := tidings.NewOptString("Hello from ogen")
	posted := must(client.ChatPostMessage(ctx, &tidings.ChatPostMessageRequest{Channel: channel, Text: text})).(*tidings.ChatPostMessageAnswerHeaders)
	fmt.Println("posted", posted.Response.Message.Text.Value)

	info := must(client.ChannelsInfo(ctx, &tidings.ChannelsInfoRequest{Channel: channel})).(*tidings.ChannelsInfoAnswerHeaders)
	fmt.Println("info", info.Response.Channel.Value.ID, info.Response.Channel.Value.UnreadCount.Value)

	sync := must(client.UnreadSync(ctx, tidings.OptUnreadSyncRequest{})).(*tidings.UnreadSyncAnswerHeaders)
	for _, row := range sync.Response.Channels {
		if row.ID == channel {
			fmt.Println("sync", row.ID, row.UnreadCount.Value)
		}
	}

	page := tidings.ChannelsHistoryRequest{Channel: channel, Limit: tidings.NewOptInt(1)}
	for range 2 {
		history := must(client.ChannelsHistory(ctx, &page)).(*tidings.ChannelsHistoryAnswerHeaders)
		fmt.Println("history", history.Response.Messages[0].Text.Value)
		page.Cursor = history.Response.ResponseMetadata.Value.NextCursor
	}

	refused := must(client.ChannelsInfo(ctx, &tidings.ChannelsInfoRequest{Channel: "C0000000000"})).(*tidings.ProblemReplyStatusCodeWithHeaders)
	fmt.Println("error", refused.StatusCode, refused.Response.Error)
}
