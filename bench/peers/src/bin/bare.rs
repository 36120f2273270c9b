//! The service without any layer.

#[tokio::main]
async fn main() -> std::io::Result<()> {
    counterfoil_bench_peers::serve(counterfoil_bench_peers::orders()).await
}
