// A device that is lost, or has no more memory: nobody steps on what it answers, nothing of it goes
// out, and the run ends with its own fault. On the fake device alone.
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "accelerator/fake_cuda.h"
#include "accelerator/trainer.h"

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/kernels/cuda/device_ops.h>
#include <sotto/kernels/vector.h>

namespace sotto::test::lost_device_test {

TEST_CASE("on a device that is lost nothing is finite, and the queue says why") {
  cuda::Queue queue;
  const cuda::DeviceOps ops(queue);
  Vector x(100, ops);
  CHECK(ops.combine({{1, x}}, x));
  fake_cuda::lose_device();
  CHECK_FALSE(ops.combine({{1, x}}, x));
  CHECK(ops.count_non_finite(x).count == 100);
  CHECK(std::isnan(ops.sum_squares(x)));
  CHECK(queue.status().fault() == Fault::io);
  CHECK(queue.status().message().find("lost") != std::string::npos);
  fake_cuda::recover();
  CHECK_FALSE(ops.combine({{1, x}}, x));  // what was put there meanwhile may be missing
}

TEST_CASE("without memory for a reduction the queue is in fault, and nobody steps on the answer") {
  cuda::Queue queue;
  const cuda::DeviceOps ops(queue);
  const Vector x(100'000, ops);
  fake_cuda::refuse_memory(true);
  CHECK(ops.count_non_finite(x).count == x.size());
  CHECK_THROWS_AS(Vector(10, ops), Error);
  fake_cuda::refuse_memory(false);
  CHECK(queue.status().message().find("memory") != std::string::npos);
}

TEST_CASE("a device that is lost ends the run with its own fault, and nothing of it goes out") {
  auto options = options_for(1, make_memory_store());
  options.algorithm = "dpsgd";
  Trainer trainer(options, 0, std::vector<float>(std::size_t{500}, 0.25F));
  REQUIRE(trainer.step().ok());
  fake_cuda::lose_device();
  const Status status = trainer.step();
  fake_cuda::recover();
  CHECK(status.fault() == Fault::io);
  CHECK(status.message().find("the device is lost") != std::string::npos);
  const Status later = trainer.step();
  CHECK(later.message() == status.message());
}

TEST_CASE("a device that is never done ends the run in time, and keeps what it may still touch") {
  auto options = options_for(1, make_memory_store());
  options.algorithm = "dpsgd";
  {
    Trainer trainer(options, 0, std::vector<float>(std::size_t{500}, 0.25F));
    REQUIRE(trainer.step().ok());
    fake_cuda::stall(true);
    const Status status = trainer.step();
    CHECK(status.fault() == Fault::io);
    CHECK_MESSAGE(status.message().find("not done in time") != std::string::npos, status.message());
    trainer.optimizer.reset();  // the fake ends the test where anything is given back now
    fake_cuda::stall(false);
  }
  CHECK(fake_cuda::reclaim() > 0);
}

TEST_CASE("a device that stalls after the last answer is noticed before memory is given back") {
  {
    cuda::Queue queue;
    auto ops = std::make_unique<cuda::DeviceOps>(queue);
    (void)ops->sum_squares(Vector(5000, *ops));
    fake_cuda::stall(true);
    ops.reset();
    CHECK(queue.hung());
    CHECK(queue.status().fault() == Fault::io);
  }
  fake_cuda::stall(false);
  CHECK(fake_cuda::reclaim() > 0);
}

TEST_CASE("an encoding of a device that is lost is one that every decoder refuses") {
  for (const std::string spec : {"none", "fp16", "bf16", "quant:8", "quant:3", "grid:8:0.05",
                                 "sign", "sign,chunk=64", "topk:0.1", "topk:1"}) {
    CAPTURE(spec);
    const auto accelerator = cuda::make_accelerator();
    const auto host = make_compressor(spec);
    const auto there = accelerator->adopt(*host);
    const Vector v(1000, accelerator->ops());
    std::vector<std::byte> out(host->max_bytes(v.size()));
    std::vector<float> y(v.size());
    REQUIRE(host->decode_add(std::span(out).first(there->encode(v, {}, out)), 1, y).ok());
    fake_cuda::lose_device();
    const std::size_t bytes = there->encode(v, {}, out);
    fake_cuda::recover();
    CHECK_FALSE(host->decode_add(std::span(out).first(bytes), 1, y).ok());
    CHECK(accelerator->status().fault() == Fault::io);
  }
}

TEST_CASE(
    "whenever a device is lost, the run ends with its fault or that of the peer who was on it") {
  for (const std::string algorithm : {"dcd", "dpsgd", "choco", "allreduce"}) {
    for (int waits = 0; waits < 60; ++waits) {
      CAPTURE(algorithm);
      CAPTURE(waits);
      auto options = options_for(2, make_memory_store());
      options.algorithm = algorithm;
      options.timeout = std::chrono::seconds(30);
      options.compressor = algorithm == "choco" ? "sign" : "";
      options.step_rule.clip_norm = 0.5;
      std::vector<std::unique_ptr<Trainer>> trainers;
      for (Rank rank = 0; rank < 2; ++rank) {
        trainers.push_back(
            std::make_unique<Trainer>(options, rank, std::vector<float>(100, 0.25F)));
      }
      fake_cuda::lose_device_after(waits);
      const auto told = [](const Status& status) {
        return status.message().find("the device is lost") != std::string::npos;
      };
      const auto statuses = play(2, [&](Rank rank) -> Status {
        Trainer& trainer = *trainers[static_cast<std::size_t>(rank)];
        Status status;
        for (int step = 0; status.ok() && step < 4; ++step) {
          status = trainer.step();
        }
        status = status.ok() ? trainer.optimizer->finish() : status;
        if (told(status)) {
          ByteBuffer out;
          CHECK_THROWS_AS(trainer.optimizer->save(out), Error);
        }
        trainer.optimizer.reset();  // its peer need not wait
        return status;
      });
      const bool all_well = statuses[0].ok() && statuses[1].ok();
      CAPTURE(statuses[0].message());
      CAPTURE(statuses[1].message());
      CHECK((all_well || told(statuses[0]) || told(statuses[1])));
      for (const Status& status : statuses) {
        const std::string& words = status.message();
        CHECK((status.ok() || told(status) || words.find("is lost: closed") != std::string::npos));
      }
      CHECK((waits > 0 || !all_well));
      trainers.clear();
      fake_cuda::recover();
    }
  }
}

TEST_CASE("a trainer's thread keeps the device that it has chosen") {
  constexpr int kCallers = 7;
  int& current = fake_cuda::current_device();
  current = kCallers;
  for (const bool overlap : {false, true}) {
    for (const std::uint32_t buckets : {1U, 2U}) {
      auto options = options_for(1, make_memory_store());
      options.topology = "complete";
      options.overlap = overlap;
      options.buckets = buckets;
      {
        auto mine = std::make_unique<Trainer>(options, 0, std::vector<float>(5000, 0.25F));
        CHECK(current == kCallers);
        for (int step = 0; step < 3; ++step) {
          REQUIRE(mine->step().ok());
          CHECK(current == kCallers);
        }
        if (buckets > 1) {
          REQUIRE(mine->optimizer->gradient_part(0, mine->gradient.there()).ok());
          CHECK(current == kCallers);
          REQUIRE(mine->optimizer->step().ok());
          CHECK(current == kCallers);
        }
        REQUIRE(mine->optimizer->drain().ok());
        ByteBuffer out;
        mine->optimizer->save(out);
        CHECK(current == kCallers);
        CHECK(mine->optimizer->finish().ok());
        mine->optimizer.reset();
        CHECK(current == kCallers);
      }
    }
  }
  current = 0;
}

}  // namespace sotto::test::lost_device_test
