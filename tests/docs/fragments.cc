// What README.md and docs/*.md show in parts, word for word, with what it takes to compile them. A
// test (tests/tidy/blocks_test.cc) finds them here. Compiled, not run: the examples are.
#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/compress/cuda/accelerator.h>
#include <sotto/compress/cuda/codec.h>
#include <sotto/observe/telemetry.h>
#include <sotto/trainers/optimizer.h>

void readme(std::span<float> parameters, std::span<const float> gradient, int batches) {
  sotto::OptimizerOptions options;  // algorithm "dcd", topology "ring", …
  options.compressor = "quant:8";
  options.step_rule.learning_rate = 0.05;
  sotto::Optimizer optimizer(options, parameters);  // parameters: your flat span of floats
  for (int batch = 0; batch < batches; ++batch) {
    // … your gradient, at `parameters`
    const sotto::Status status = optimizer.step(gradient);  // was: parameters -= lr * gradient
    // a lost peer or a NaN: status.message() names it
    (void)status;
  }
  const sotto::Status done = optimizer.finish();
  (void)done;
}

void observability(std::span<float> parameters) {
  sotto::Telemetry telemetry({.metrics = "9464", .tensorboard = "board"});
  sotto::OptimizerOptions options;
  options.observer = &telemetry;
  sotto::Optimizer optimizer(options, parameters);
}

int torch(void (*train)()) {
  try {
    train();
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "%s\n", fault.what());
    return 1;
  }
}

void privacy(std::span<float> parameters) {
  sotto::PrivacyOptions privacy;  // of the whole gradient
  // PrivacyUnit::example expects a ClippedSum.
  privacy.clip_norm = 1;
  privacy.noise_multiplier = 8;
  privacy.epsilon = 3;
  privacy.ledger = "state/privacy";
  sotto::Optimizer optimizer({.algorithm = "choco", .privacy = privacy}, parameters);
}

void accelerator(std::span<float> x, std::span<const float> gradient, sotto::cuda::Stream stream) {
  // x and gradient: floats in device memory; stream: where the trainer computes gradients.
  sotto::OptimizerOptions options;
  options.algorithm = "dcd";
  options.compressor = "quant:8";
  options.accelerator = sotto::cuda::make_accelerator(stream);  // sotto/compress/cuda/accelerator.h
  sotto::Optimizer optimizer(options, x);
  const sotto::Status status = optimizer.step(gradient);
  (void)status;
}

void gpu(std::span<const float> x, std::span<float> e, std::span<float> y,
         const sotto::RandomKey& key, std::span<std::byte> frame, std::span<std::byte> work,
         std::span<sotto::cuda::Outcome> outcomes, sotto::cuda::Stream stream) {
  const sotto::cuda::Codec codec("quant:4");
  // x, e and y: floats on the device; frame: codec.bytes(d); work: codec.workspace(d) bytes.
  codec.encode_residual(x, e, key, frame, work, &outcomes[0], stream);  // e ← x + e − C, one pass
  const sotto::Status status = codec.decode_add(frame, 0.5F, y, &outcomes[1], stream);
  // y ← y + C / 2. When the stream is done: outcomes[k].status() of a copy on the host.
  (void)status;
}
