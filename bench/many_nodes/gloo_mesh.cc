#include "gloo_mesh.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <sotto/comm/local_store.h>
#include <sotto/trainers/launch/local_processes.h>
#include <sotto/trainers/launch/private_directory.h>

namespace sotto::bench {
namespace {

using Clock = Deadline::Clock;

constexpr std::chrono::seconds kPatience{300};

void connect(int rank, int nodes, const std::string& directory) {
  gloo::rendezvous::FileStore store(directory);
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, nodes);
  context->setTimeout(kPatience);
  context->connectFullMesh(store, device);
  gloo::BarrierOptions barrier(context);
  gloo::barrier(barrier);
}

}  // namespace

double connect_gloo_mesh(int nodes) {
  const PrivateDirectory directory;
  const LocalStore times;
  const std::atomic<bool> never{false};
  const auto start = Clock::now();
  const auto node_main = [&](Rank rank) -> Status {
    connect(rank, nodes, directory.path());
    const auto now = Clock::now();  // the same clock for all processes of a host
    return times.open()->set(std::to_string(rank), std::as_bytes(std::span(&now, 1)));
  };
  if (const Status status = run_processes(nodes, node_main, never, kPatience); !status.ok()) {
    throw std::runtime_error("gloo: " + status.message());
  }
  auto last = start;
  const auto store = times.open();
  for (int rank = 0; rank < nodes; ++rank) {
    const auto told = store->get(std::to_string(rank), Deadline::after(kPatience));
    Clock::time_point at;
    if (!told.ok() || told->size() != sizeof at) {
      throw std::runtime_error("gloo: node " + std::to_string(rank) + " told no time");
    }
    std::memcpy(&at, told->data(), sizeof at);
    last = std::max(last, at);
  }
  return std::chrono::duration<double>(last - start).count();
}

}  // namespace sotto::bench
