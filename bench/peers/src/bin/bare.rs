//! The service without any layer, which the services with one are compared with. Its routes belong to the library.

#[tokio::main]
async fn main() -> std::io::Result<()> {
    counterfoil_bench_peers::serve(counterfoil_bench_peers::counted(counterfoil_bench_peers::orders())).await
}
