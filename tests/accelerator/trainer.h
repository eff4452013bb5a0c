// A training program whose model is in a device's memory, for tests.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "accelerator/device.h"
#include "trainers/nodes.h"

#include <sotto/compress/cuda/accelerator.h>

namespace sotto::test {

/// Pulls node i towards i, each element at its own pace.
inline void pull(Rank rank, Round /*round*/, std::span<const float> x, std::span<float> gradient) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    gradient[k] = (x[k] - static_cast<float>(rank)) / static_cast<float>(1 + k % 7);
  }
}

/// What a trainer on a device holds.
struct Trainer {
  Trainer(OptimizerOptions options, Rank node, std::span<const float> start)
      : rank(node), stream(test::make_stream()), x(start.size()), gradient(start.size()) {
    x.write(start);
    options.rank = node;
    options.accelerator = cuda::make_accelerator(stream);
    optimizer = std::make_unique<Optimizer>(std::move(options), x.there());
  }
  ~Trainer() {
    optimizer.reset();
    destroy(stream);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  Status step() {
    if (announce) {
      if (Status status = optimizer->begin_step(); !status.ok()) {
        return status;
      }
    }
    gradient.compute(
        x.there(),
        [rank = rank, round = optimizer->round()](auto from, auto to) {
          pull(rank, round, from, to);
        },
        stream);
    return optimizer->step(gradient.there());
  }
  std::vector<float> model() {
    finish(stream);
    return x.read();
  }

  bool announce = true;  ///< calls begin_step, which callers need not
  Rank rank;
  cuda::Stream stream;
  DeviceFloats x;
  DeviceFloats gradient;
  std::unique_ptr<Optimizer> optimizer;
};

}  // namespace sotto::test
