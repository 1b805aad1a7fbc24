// SPDX-License-Identifier: Apache-2.0
// progenitor makes the client while this is compiled, from openapi-3.0.json beside Cargo.toml.
use std::env::var;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

progenitor::generate_api!("openapi-3.0.json");

fn body<T: DeserializeOwned>(arguments: Value) -> T {
    from_value(arguments).unwrap()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, format!("Bearer {}", var("TOKEN")?).parse()?);
    headers.insert("X-Tidings-Errors", HeaderValue::from_static("http"));
    let client = Client::new_with_client(&var("API")?, reqwest::Client::builder().default_headers(headers).build()?);
    let channel = var("CHANNEL")?;

    let posted = client.chat_post_message(&body(json!({"channel": channel, "text": "Hello from Rust"}))).await?;
    println!("posted {}", posted.message.as_ref().unwrap().text.as_ref().unwrap());

    let info = client.channels_info(&body(json!({"channel": channel}))).await?;
    let known = info.channel.as_ref().unwrap();
    println!("info {} {}", known.id.as_str(), known.unread_count.unwrap());

    let sync = client.unread_sync(&body(json!({}))).await?;
    for row in sync.channels.iter().filter(|row| row.id.as_str() == channel) {
        println!("sync {} {}", row.id.as_str(), row.unread_count.unwrap());
    }

    let mut page = json!({"channel": channel, "limit": 1});
    for _ in 0..2 {
        let history = client.channels_history(&body(page.clone())).await?;
        println!("history {}", history.messages[0].text.as_ref().unwrap());
        page["cursor"] = json!(history.response_metadata.as_ref().unwrap().next_cursor);
    }

    if let Err(Error::ErrorResponse(refused)) = client.channels_info(&body(json!({"channel": "C0000000000"}))).await {
        println!("error {} {}", refused.status().as_u16(), refused.error.as_str());
    }
    Ok(())
}
