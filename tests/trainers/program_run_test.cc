// Rounds of programs that make all that they work on: over threads, with a program of any kind.
#include <sotto/trainers/program_run.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/comm/stores.h>

namespace sotto::test::program_run_test {

namespace {

/// Counts its rounds, and gives the number of its node as the gradient.
class Counter final : public GradientProgram {
 public:
  explicit Counter(const ProgramNode& node) : gradient_{static_cast<float>(node.rank() + 1)} {}
  std::span<const ProgramStage> stages() const override { return stages_; }
  std::span<const float> gradient() const override { return gradient_; }
  int rounds() const { return rounds_; }

 private:
  std::vector<ProgramStage> stages_ = {{"count",
                                        [this](const RoundInput&) {
                                          ++rounds_;
                                          return Status();
                                        },
                                        nullptr, 0}};
  std::array<float, 1> gradient_;
  int rounds_ = 0;
};

}  // namespace

TEST_CASE("nodes of a program step together, and the algorithm takes the program's gradients") {
  constexpr int kNodes = 2;
  const std::shared_ptr<Store> store = make_memory_store();
  std::array<float, kNodes> models{};
  std::array<int, kNodes> rounds{};
  std::array<Status, kNodes> statuses;
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < kNodes; ++rank) {
    threads.emplace_back([&, at = static_cast<std::size_t>(rank)] {
      ProgramRun<Counter> run({.rank = static_cast<Rank>(at),
                               .nodes = kNodes,
                               .grid = "data=2",
                               .parameters = std::span(models).subspan(at, 1)},
                              {.store = store},
                              {.axis = "data", .step_rule = {.learning_rate = 1}});
      for (int round = 0; round < 3 && statuses[at].ok(); ++round) {
        statuses[at] = run.step();
      }
      if (statuses[at].ok()) {
        statuses[at] = run.finish();
      }
      rounds[at] = run.program().rounds();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t node = 0; node < kNodes; ++node) {
    REQUIRE_MESSAGE(statuses[node].ok(), statuses[node].message());
    CHECK(rounds[node] == 3);
    CHECK(models[node] == -4.5F);  // three steps of the mean of 1 and 2
  }
}

TEST_CASE("a transport that there is not is refused at the first step, and finish waits for none") {
  float model = 0;
  ProgramRun<Counter> run({.rank = 0, .nodes = 2, .grid = "data=2", .parameters = {&model, 1}},
                          {.store = make_memory_store(), .transport = "pigeons"});
  CHECK(run.finish().ok());
  CHECK_THROWS_AS((void)run.step(), Error);
}

}  // namespace sotto::test::program_run_test
