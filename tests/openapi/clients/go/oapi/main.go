// SPDX-License-Identifier: Apache-2.0
// oapi-codegen -generate types,client -package tidings http://127.0.0.1:8080/openapi-3.0.json
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"example/oapi/tidings"
)

func authorize(_ context.Context, request *http.Request) error {
	request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
	request.Header.Set("X-Tidings-Errors", "http")
	return nil
}

func must[T any](reply T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return reply
}

func main() {
	ctx, channel := context.Background(), os.Getenv("CHANNEL")
	client := must(tidings.NewClientWithResponses(os.Getenv("API"), tidings.WithRequestEditorFn(authorize)))

	text := "Hello from oapi-codegen"
	posted := must(client.ChatPostMessageWithResponse(ctx, tidings.ChatPostMessageRequest{Channel: channel, Text: &text}))
	fmt.Println("posted", *posted.JSON200.Message.Text)

	info := must(client.ChannelsInfoWithResponse(ctx, tidings.ChannelsInfoRequest{Channel: channel}))
	fmt.Println("info", info.JSON200.Channel.Id, *info.JSON200.Channel.UnreadCount)

	sync := must(client.UnreadSyncWithResponse(ctx, tidings.UnreadSyncRequest{}))
	for _, row := range *sync.JSON200.Channels {
		if row.Id == channel {
			fmt.Println("sync", row.Id, *row.UnreadCount)
		}
	}

	limit := 1
	page := tidings.ChannelsHistoryRequest{Channel: channel, Limit: &limit}
	for range 2 {
		history := must(client.ChannelsHistoryWithResponse(ctx, page)).JSON200
		fmt.Println("history", *(*history.Messages)[0].Text)
		page.Cursor = history.ResponseMetadata.NextCursor
	}

	refused := must(client.ChannelsInfoWithResponse(ctx, tidings.ChannelsInfoRequest{Channel: "C0000000000"}))
	problem := refused.ApplicationproblemJSON4XX
	fmt.Println("error", problem.Status, problem.Error)
}
