//! The demo's API: orders kept in memory, by a service that knows nothing of keys. Real services are in `examples/`.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The product that is ordered and never answered.
pub(super) const SLOW: &str = "slow";

const BODY_BYTES_MAX: usize = 64 * 1024;
const ORDERS_MAX: usize = 10_000;

type Orders = Arc<Mutex<Vec<Value>>>;

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener) {
    let orders = Orders::default();
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let orders = orders.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| answer(orders.clone(), request));
            // A caller that hangs up is the point of the demo.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(orders: Orders, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/orders") => {
            let all = orders.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Ok(told(StatusCode::OK, &Value::Array(all)))
        }
        (&Method::POST, "/orders") => {
            let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map(|body| body.to_bytes());
            let asked = body.ok().and_then(|body| serde_json::from_slice::<Value>(&body).ok());
            Ok(create(&orders, asked).await)
        }
        _ => Ok(told(StatusCode::NOT_FOUND, &json!({ "error": "there is only /orders" }))),
    }
}

async fn create(orders: &Orders, asked: Option<Value>) -> Response<Full<Bytes>> {
    let product = asked.as_ref().and_then(|asked| asked.get("product")).and_then(Value::as_str);
    let Some(product) = product.map(str::to_owned) else {
        return told(StatusCode::BAD_REQUEST, &json!({ "error": "send {\"product\": \"tea\", \"quantity\": 2}" }));
    };
    let quantity = asked.as_ref().and_then(|asked| asked.get("quantity")).cloned().unwrap_or_else(|| json!(1));
    let order = {
        let mut orders = orders.lock().unwrap_or_else(PoisonError::into_inner);
        if orders.len() >= ORDERS_MAX {
            return told(StatusCode::INSUFFICIENT_STORAGE, &json!({ "error": "the demo is full: start it again" }));
        }
        let order = json!({ "id": orders.len() + 1, "product": product, "quantity": quantity });
        orders.push(order.clone());
        order
    };
    if product == SLOW {
        // The order stands, and its answer never comes: what a crash between effect and answer looks like.
        std::future::pending::<()>().await;
    }
    let mut answer = told(StatusCode::CREATED, &order);
    if let Some(location) = order.get("id").and_then(|id| format!("/orders/{id}").parse().ok()) {
        answer.headers_mut().insert(header::LOCATION, location);
    }
    answer
}

fn told(status: StatusCode, json: &Value) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(format!("{json}\n")));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    answer
}
