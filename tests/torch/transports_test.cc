// Transports beside libtorch, which may have libraries of theirs inside.
#include "torch/nets.h"

#include <sotto/comm/transport.h>

using namespace torch_test;

namespace {

std::vector<Net> trained_over(const std::string& transport) {
  constexpr int kPair = 2;
  auto options = job(kPair, "allreduce");
  options.transport = transport;
  std::vector<Net> nets = {make_net(), make_net()};
  const std::vector<std::vector<Batch>> batches = {make_batches(5, 8, 70), make_batches(5, 8, 71)};
  const auto thrown = play(kPair, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    DistributedOptimizer optimizer(torch::optim::SGD(nets[r]->parameters(), 0.1),
                                   at_rank(options, rank));
    for (const Batch& batch : batches[r]) {
      take_step(nets[r], optimizer, batch);
    }
    optimizer.finish();
  });
  CHECK(thrown == std::vector<std::string>(kPair));
  return nets;
}

}  // namespace

TEST_CASE("every transport gives the same bits beside libtorch") {
  const auto reference = trained_over("inproc");
  for (const auto& transport : sotto::transports()) {
    if (transport.available && transport.name != "nccl") {
      CAPTURE(transport.name);
      CHECK(same_bits(trained_over(std::string(transport.name))[0], reference[0]));
    }
  }
}
