//! The service in the layer of the crate `idempotent`, its receipts in memory.

use idempotent::memory::MemoryStore;
use idempotent::middleware::IdempotencyLayer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layer = IdempotencyLayer::new(MemoryStore::builder().try_build()?);
    let orders = counterfoil_bench_peers::orders().layer(layer);
    Ok(counterfoil_bench_peers::serve(counterfoil_bench_peers::counted(orders)).await?)
}
