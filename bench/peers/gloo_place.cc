#include "gloo_place.h"

#include <chrono>
#include <cstdint>

#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

namespace sotto::peers {

std::shared_ptr<gloo::Context> meet(const Place& place, const std::string& name, int rank,
                                    int size) {
  gloo::rendezvous::FileStore files(place.store);
  gloo::rendezvous::PrefixStore store(name, files);
  auto device = gloo::transport::tcp::CreateDevice(place.address.c_str());
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(std::chrono::milliseconds(static_cast<std::int64_t>(1000 * place.timeout_s)));
  context->connectFullMesh(store, device);
  return context;
}

void meet_again(const std::shared_ptr<gloo::Context>& context) {
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

}  // namespace sotto::peers
