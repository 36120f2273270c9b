//! One payment with reqwest-retry, under a key that this process draws.

use std::process::ExitCode;

use reqwest_middleware::ClientBuilder;
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let base = std::env::args().nth(1).expect("the provider's address");
    let policy = ExponentialBackoff::builder().build_with_max_retries(3);
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(RetryTransientMiddleware::new_with_policy(policy))
        .build();
    let sent = client
        .post(format!("{base}/v1/payment_intents"))
        .header("idempotency-key", uuid::Uuid::new_v4().to_string())
        .form(&[("amount", "2000"), ("currency", "eur")])
        .send()
        .await;
    let answer = match sent {
        Ok(answer) => answer,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let status = answer.status();
    match answer.text().await {
        Ok(text) if status.is_success() => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Ok(_) => {
            eprintln!("{status}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
