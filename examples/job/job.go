// SPDX-License-Identifier: Apache-2.0

// The job brings the people of a CSV file (name,email) into the workspace and into a channel, and says there who is new. It may be
// run again and again, also after it was killed halfway: who is there already is left alone, and the news is posted once.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"example/job/tidings"
)

const many = 1000 // as many users as a call takes, or gives

// What goes with each call. By the second header errors have an HTTP status, and a type in the generated client.
func authorize(_ context.Context, request *http.Request) error {
	request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
	request.Header.Set("X-Tidings-Errors", "http")
	return nil
}

// patient makes a call again when the server cannot be reached or says "later". It is safe for all calls of this job. What the
// server refuses is an error.
type patient struct{}

func (patient) Do(request *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		body, err := request.GetBody() // a copy: it can be read only once
		if err != nil {
			return nil, err
		}
		request.Body = body
		reply, err := http.DefaultClient.Do(request)
		if err == nil && reply.StatusCode < 300 {
			return reply, nil
		}
		pause := time.Duration(attempt) * time.Second
		if err == nil {
			err = refusal(reply)
			if reply.StatusCode != http.StatusTooManyRequests && reply.StatusCode < 500 {
				return nil, err
			}
			if seconds, e := strconv.Atoi(reply.Header.Get("Retry-After")); e == nil {
				pause = time.Duration(seconds) * time.Second
			}
		}
		if attempt == 5 {
			return nil, err
		}
		log.Printf("%v: again in %v", err, pause)
		time.Sleep(pause)
	}
}

func refusal(reply *http.Response) error {
	defer reply.Body.Close()
	var problem tidings.ProblemReply
	if err := json.NewDecoder(reply.Body).Decode(&problem); err != nil {
		return err
	}
	return fmt.Errorf("refused with %d %s", problem.Status, problem.Error)
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func read(path string) []tidings.NewUser {
	file := must(os.Open(path))
	defer file.Close()
	var people []tidings.NewUser
	for _, line := range must(csv.NewReader(file).ReadAll()) {
		people = append(people, tidings.NewUser{Name: line[0], Email: &line[1]})
	}
	return people
}

// ids says who has which name: all users of the workspace, page by page.
func ids(ctx context.Context, client *tidings.ClientWithResponses) map[string]string {
	limit, cursor, found := many, "", map[string]string{}
	for {
		page := must(client.AdminUsersListWithResponse(ctx, tidings.AdminUsersListRequest{Limit: &limit, Cursor: &cursor})).JSON200
		for _, user := range *page.Users {
			found[user.Name] = user.Id
		}
		if cursor = *page.ResponseMetadata.NextCursor; cursor == "" {
			return found
		}
	}
}

func main() {
	ctx, channel := context.Background(), os.Getenv("CHANNEL")
	client := must(tidings.NewClientWithResponses(os.Getenv("API"),
		tidings.WithHTTPClient(patient{}), tidings.WithRequestEditorFn(authorize)))
	people := read(os.Args[1])

	// Each has a result of its own: one who cannot be made stops no other. Who is there already has a name that is taken.
	for part := range slices.Chunk(people, many) {
		made := must(client.AdminUsersCreateManyWithResponse(ctx, tidings.AdminUsersCreateManyRequest{Users: part})).JSON200
		for at, result := range *made.Results {
			if result.Error != nil && *result.Error != "name_taken" {
				log.Printf("%s: %s %v", part[at].Name, *result.Error, *result.Messages)
			}
		}
	}

	// All of them are added: the channel knows who is new there. Those of a run that was cut short are not forgotten.
	found, added := ids(ctx, client), 0
	var members []string
	for _, person := range people {
		if id := found[person.Name]; id != "" {
			members = append(members, id)
		}
	}
	for part := range slices.Chunk(members, many) {
		reply := must(client.AdminChannelsAddMembersWithResponse(ctx, tidings.AdminChannelsAddMembersRequest{Channel: channel, Users: part})).JSON200
		added += *reply.Added
	}

	// The same people make the same id, under which the server posts one message, whoever runs this how often.
	slices.Sort(members)
	id := fmt.Sprintf("welcome-%x", sha256.Sum256([]byte(strings.Join(members, " "))))
	text := fmt.Sprintf("Welcome to %d people", len(members))
	posted := must(client.ChatPostMessageWithResponse(ctx, tidings.ChatPostMessageRequest{Channel: channel, Text: &text, ClientMsgId: &id})).JSON200
	fmt.Printf("%d people, %d added, posted at %s\n", len(members), added, *posted.Ts)
}
