//! Whether the agent of a node lives, and what it has counted, over HTTP.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::metrics::AgentMetrics;
use crate::serve::Health;

pub(super) async fn serve(listener: TcpListener, health: Health, metrics: AgentMetrics) {
    let ready = health.clone();
    let routes = Router::new()
        .route("/livez", get(async move || checked(health.is_alive(), "the loop stands still")))
        .route("/readyz", get(async move || checked(ready.is_ready(), "pods have not been listed")))
        .route("/metrics", get(async move || counted(&metrics)));
    if let Err(error) = axum::serve(listener, routes).await {
        tracing::warn!(%error, "health and metrics are no longer served");
    }
}

fn counted(metrics: &AgentMetrics) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics.text()).into_response()
}

fn checked(is_well: bool, complaint: &'static str) -> Response {
    match is_well {
        true => "ok".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, complaint).into_response(),
    }
}
