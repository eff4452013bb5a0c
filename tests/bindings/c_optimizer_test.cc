// The optimizer through sotto.h: the same bits as in C++, and clear refusals.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c_node.h"
#include "support/scratch.h"
#include "trainers/nodes.h"

namespace sotto::test::c_optimizer_test {

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kDimension = 40;

using Models = std::vector<std::vector<float>>;

Models zeros() { return Models(kNodes, std::vector<float>(kDimension)); }

/// Pulls node i towards i.
void pull(int rank, std::span<const float> x, std::span<float> gradient) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    gradient[k] = x[k] - static_cast<float>(rank);
  }
}

Words words_of(int rank, Words more) {
  Words words = {"nodes", "4", "rank", std::to_string(rank), "seed", "1", "lr", "0.05"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Steps until `end`.
sotto_status step_to(sotto_optimizer* optimizer, int rank, std::vector<float>& x,
                     std::uint64_t end) {
  std::vector<float> gradient(x.size());
  for (std::uint64_t round = 0;;) {
    if (sotto_status status = sotto_optimizer_round(optimizer, &round);
        status != SOTTO_OK || round >= end) {
      return status;
    }
    pull(rank, x, gradient);
    if (sotto_status status = sotto_optimizer_step(optimizer, gradient.data(), gradient.size());
        status != SOTTO_OK) {
      return status;
    }
  }
}

Models c_trained(const Words& more, std::uint64_t rounds) {
  Models x = zeros();
  const CStore store = c_store();
  c_play(kNodes, [&](int rank) {
    auto& mine = x[static_cast<std::size_t>(rank)];
    const COptimizer optimizer = c_optimizer(words_of(rank, more), mine, store.get());
    const bool there = optimizer != nullptr;
    CHECK_MESSAGE(there, std::string(sotto_last_error()));
    if (there) {
      const bool done = step_to(optimizer.get(), rank, mine, rounds) == SOTTO_OK &&
                        sotto_optimizer_finish(optimizer.get()) == SOTTO_OK;
      CHECK_MESSAGE(done, std::string(sotto_last_error()));
    }
  });
  return x;
}

Models cpp_trained(sotto::OptimizerOptions options, std::uint64_t rounds) {
  Models x = zeros();
  const auto statuses = play(kNodes, [&](sotto::Rank rank) {
    return train(
        options, rank, rounds,
        [](sotto::Rank r, sotto::Round, std::span<const float> at, std::span<float> gradient) {
          pull(r, at, gradient);
        },
        x[static_cast<std::size_t>(rank)]);
  });
  CHECK(std::all_of(statuses.begin(), statuses.end(), [](const auto& s) { return s.ok(); }));
  return x;
}

sotto::OptimizerOptions cpp_options() { return options_for(kNodes, sotto::make_memory_store()); }

}  // namespace

TEST_CASE("a run through the C library ends with the bits of a C++ one") {
  auto options = cpp_options();
  options.compressor = "quant:4";
  CHECK(c_trained({"compressor", "quant:4"}, 30) == cpp_trained(options, 30));

  options = cpp_options();
  options.algorithm = "choco";
  options.compressor = "topk:0.1";
  options.step_rule.momentum = 0.9;
  options.step_rule.nesterov = true;
  options.step_rule.weight_decay = 0.01;
  CHECK(c_trained({"algorithm", "choco", "compressor", "topk:0.1", "momentum", "0.9", "nesterov",
                   "true", "weight_decay", "0.01"},
                  30) == cpp_trained(options, 30));

  options = cpp_options();
  options.algorithm = "onebit-adam:freeze=5";
  options.step_rule.rule = "adam";
  CHECK(c_trained({"algorithm", "onebit-adam", "freeze-step", "5"}, 30) ==
        cpp_trained(options, 30));

  options = cpp_options();
  options.communication_interval = 3;
  options.algorithm = "allreduce";
  options.outer_step_rule = sotto::StepRuleOptions{
      .rule = "sgd", .learning_rate = 0.7, .momentum = 0.9, .nesterov = true};
  options.step_rule.schedule = sotto::parse_schedule("cosine,warmup=3", 30);
  CHECK(c_trained({"algorithm", "allreduce", "communication-interval", "3", "outer-lr", "0.7",
                   "outer-momentum", "0.9", "outer-nesterov", "true", "schedule", "cosine,warmup=3",
                   "rounds", "30"},
                  30) == cpp_trained(options, 30));

  options.streaming = {.fragments = 3, .mix = {.own = 0.5}};
  options.step_rule.schedule = {};
  CHECK(c_trained({"algorithm", "allreduce", "communication-interval", "3", "outer-lr", "0.7",
                   "outer-momentum", "0.9", "outer-nesterov", "true", "fragments", "3", "sync-mix",
                   "0.5"},
                  30) == cpp_trained(options, 30));

  options = cpp_options();
  options.communication_interval = 3;
  options.algorithm = "dpsgd";
  options.outer_step_rule = sotto::StepRuleOptions{.learning_rate = 0.7, .momentum = 0.5};
  options.outer_after_mixing = true;
  CHECK(c_trained({"algorithm", "dpsgd", "communication-interval", "3", "outer-lr", "0.7",
                   "outer-momentum", "0.5", "outer-after-mixing", "true"},
                  30) == cpp_trained(options, 30));
}

TEST_CASE("a state goes on bit for bit, from a buffer and from a file") {
  const Models whole = c_trained({}, 20);
  const Scratch folder;
  for (const bool file : {false, true}) {
    std::vector<std::vector<std::byte>> states(kNodes);
    Models x = zeros();
    CStore store = c_store();
    const auto path = [&](int rank) {
      return (folder.path() / ("node-" + std::to_string(rank))).string();
    };
    c_play(kNodes, [&](int rank) {
      auto& mine = x[static_cast<std::size_t>(rank)];
      auto& state = states[static_cast<std::size_t>(rank)];
      const COptimizer optimizer = c_optimizer(words_of(rank, {}), mine, store.get());
      CHECK(step_to(optimizer.get(), rank, mine, 8) == SOTTO_OK);
      state = c_state(optimizer.get());
      CHECK(sotto_optimizer_save_file(optimizer.get(), path(rank).c_str()) == SOTTO_OK);
    });
    x = zeros();
    store = c_store();
    c_play(kNodes, [&](int rank) {
      auto& mine = x[static_cast<std::size_t>(rank)];
      const auto& state = states[static_cast<std::size_t>(rank)];
      const COptimizer optimizer = c_optimizer(words_of(rank, {}), mine, store.get());
      const sotto_status loaded =
          file ? sotto_optimizer_load_file(optimizer.get(), path(rank).c_str())
               : sotto_optimizer_load(optimizer.get(), state.data(), state.size());
      CHECK_MESSAGE(loaded == SOTTO_OK, std::string(sotto_last_error()));
      CHECK(step_to(optimizer.get(), rank, mine, 20) == SOTTO_OK);
      CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_OK);
    });
    CHECK(x == whole);
  }
}

TEST_CASE("a state that is damaged, or of another run, is refused and changes nothing") {
  std::vector<float> x(kDimension, 1);
  const Words alone = {"nodes", "1", "lr", "0.5"};
  const COptimizer first = c_optimizer(alone, x);
  const auto state = c_state(first.get());
  const std::size_t size = state.size();
  REQUIRE(size > 0);
  std::vector<float> y(kDimension, 2);
  const std::vector<float> before = y;
  const COptimizer second = c_optimizer(alone, y);
  for (std::size_t at = 0; at < size; ++at) {
    auto damaged = state;
    damaged[at] ^= std::byte{1};
    CAPTURE(at);
    CHECK(sotto_optimizer_load(second.get(), damaged.data(), size) != SOTTO_OK);
    CHECK(sotto_optimizer_load(second.get(), state.data(), at) == SOTTO_MALFORMED);
  }
  CHECK(y == before);
  const COptimizer other = c_optimizer({"nodes", "1", "lr", "0.25"}, y);
  CHECK(sotto_optimizer_load(other.get(), state.data(), size) == SOTTO_UNEXPECTED);
  CHECK(says("lr is 0.25 here and 0.5 there"));
  CHECK(sotto_optimizer_load_file(second.get(), "/nowhere/at/all") == SOTTO_IO);
  CHECK(sotto_optimizer_load(second.get(), state.data(), size) == SOTTO_OK);
  CHECK(y == x);
}

TEST_CASE("settings that are wrong are refused by name") {
  struct Case {
    Words words;
    std::string message;
  };
  const Case cases[] = {
      {{"nodes", "1", "colour", "red"}, "colour: there is no such setting"},
      {{"nodes", "1", "algoritm", "dcd"}, "did you mean algorithm?"},
      {{"nodes", "1", "lr"}, "lr: its value is missing"},
      {{"nodes", "1", "lr", "1", "lr", "2"}, "lr: it is given twice"},
      {{"nodes", "1", "clip-norm", "1", "clip_norm", "1"}, "clip_norm: it is given twice"},
      {{"nodes", "1", "job.a-b", "1", "job.a-b", "1"}, "job.a-b: it is given twice"},
      {{"nodes", "1", "lr", "much"}, "lr: 'much' is refused: it must be a number"},
      {{"nodes", "1", "lr", "-1"}, "lr: '-1' is refused"},
      {{"nodes", "-1"}, "nodes: '-1' is refused: it must be a whole number"},
      {{"nodes", "4"}, "rank: it is missing"},
      {{"rank", "0"}, "nodes: it is missing"},
      {{"nodes", "4", "rank", "4"}, "rank: '4' is refused"},
      {{"nodes", "1", "lazy", "yes"}, "lazy: 'yes' is refused: it must be true or false"},
      {{"nodes", "1", "algorithm", "dcdd"}, "algorithm"},
      {{"nodes", "1", "compressor", "quant:99"}, "quant"},
      {{"nodes", "1", "overlap", "maybe"}, "overlap: 'maybe' is refused: it is on or off"},
      {{"nodes", "1", "beta1", "0.5"}, "beta1: the step rule is sgd, which has none"},
      {{"nodes", "1", "schedule", "cosine"}, "schedule: 'cosine' is refused: it needs an end"},
      {{"nodes", "1", "noise-multiplier", "1"}, "give clip_norm too"},
      {{"nodes", "1", "noise-multiplier", "1", "clip-norm", "1"}, "sampling-rate"},
      {{"nodes", "1", "transport", "pigeon"}, "transport"},
      {{"nodes", "1", "job.model", "two\nlines"}, "line break"},
      {{"nodes", "1", "job.a=b", "c"}, "an entry of the job has no '=' in its name"},
      {{"nodes", "1", "job.a", "b", "job.a", "c"}, "job.a: it is given twice"},
      {{"nodes", "1", "byzantine", "0"}, "there is no such setting"},
  };
  std::vector<float> x(kDimension);
  for (const Case& one : cases) {
    CAPTURE(one.words.back());
    CHECK(c_optimizer(one.words, x).get() == nullptr);
    CHECK(says(one.message));
  }
}

TEST_CASE("null pointers are refused, and destroyed for nothing") {
  float x = 0;
  std::uint64_t round = 0;
  std::size_t size = 0;
  void* bytes = nullptr;
  char* json = nullptr;
  CHECK(sotto_optimizer_create(nullptr, &x, 1, nullptr, nullptr, nullptr) == SOTTO_REFUSED);
  CHECK(says("out: a null pointer is refused"));
  sotto_optimizer* made = nullptr;
  CHECK(sotto_optimizer_create(nullptr, nullptr, 1, nullptr, nullptr, &made) == SOTTO_REFUSED);
  CHECK(says("parameters: a null pointer is refused"));
  CHECK(sotto_optimizer_create(nullptr, &x, 0, nullptr, nullptr, &made) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_connect(nullptr) == SOTTO_REFUSED);
  CHECK(says("optimizer: a null pointer is refused"));
  CHECK(sotto_optimizer_begin_step(nullptr) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_step(nullptr, &x, 1) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_set_learning_rate(nullptr, 1) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_drain(nullptr) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_finish(nullptr) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_round(nullptr, &round) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_report(nullptr, &json) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_save(nullptr, &bytes, &size) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_load(nullptr, nullptr, 0) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_save_file(nullptr, "x") == SOTTO_REFUSED);
  CHECK(sotto_optimizer_load_file(nullptr, "x") == SOTTO_REFUSED);
  CHECK(sotto_layout_add(nullptr, "x", 0, nullptr) == SOTTO_REFUSED);
  sotto_optimizer_destroy(nullptr);
  sotto_layout_destroy(nullptr);
  sotto_store_destroy(nullptr);
  sotto_compressor_destroy(nullptr);
  sotto_topology_destroy(nullptr);
  sotto_free(nullptr);
}

TEST_CASE("a step checks its gradient, and a run its order") {
  std::vector<float> x(kDimension, 1);
  const Words alone = {"nodes", "1", "lr", "0.5"};
  const COptimizer optimizer = c_optimizer(alone, x);
  std::vector<float> gradient(kDimension, 1);
  CHECK(sotto_optimizer_step(optimizer.get(), gradient.data(), kDimension - 1) == SOTTO_REFUSED);
  CHECK(says("gradient: '39 elements' is refused"));
  CHECK(sotto_optimizer_step(optimizer.get(), nullptr, kDimension) == SOTTO_REFUSED);
  gradient[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(sotto_optimizer_step(optimizer.get(), gradient.data(), kDimension) == SOTTO_NON_FINITE);
  CHECK(x == std::vector<float>(kDimension, 1));
  const auto state = c_state(optimizer.get());  // as if no step had begun
  std::vector<float> y(kDimension);
  CHECK(sotto_optimizer_load(c_optimizer(alone, y).get(), state.data(), state.size()) == SOTTO_OK);
  CHECK(y == x);
  // The step is under way, as another gradient may follow.
  CHECK(sotto_optimizer_load(optimizer.get(), state.data(), state.size()) == SOTTO_REFUSED);
  CHECK(says("load: it comes before the first step"));
  void* bytes = nullptr;
  CHECK(sotto_optimizer_save(optimizer.get(), &bytes, nullptr) == SOTTO_REFUSED);
  CHECK(says("size: a null pointer is refused"));
  gradient[7] = 1;
  CHECK(sotto_optimizer_step(optimizer.get(), gradient.data(), kDimension) == SOTTO_OK);
  CHECK(x == std::vector<float>(kDimension, 0.5F));
  CHECK(sotto_optimizer_set_learning_rate(optimizer.get(), -1) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_set_learning_rate(optimizer.get(), std::nan("")) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_set_learning_rate(optimizer.get(), 1e39) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_set_learning_rate(optimizer.get(), 0.25) == SOTTO_OK);
  CHECK(sotto_optimizer_step(optimizer.get(), gradient.data(), kDimension) == SOTTO_OK);
  CHECK(x == std::vector<float>(kDimension, 0.25F));
  CHECK(sotto_optimizer_load(optimizer.get(), gradient.data(), 4) == SOTTO_REFUSED);
  CHECK(says("load: it comes before the first step"));
  CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_OK);
  CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_OK);
  CHECK(sotto_optimizer_step(optimizer.get(), gradient.data(), kDimension) == SOTTO_REFUSED);
  CHECK(says("step: the run is finished"));
  CHECK(sotto_optimizer_mean(optimizer.get(), y.data(), y.size(), nullptr) == SOTTO_REFUSED);
  CHECK(says("mean: the run is finished"));
  const auto report = c_report(optimizer.get());
  CHECK(report.at("round") == 2);
  CHECK(report.at("settings").at("lr") == "0.25");
  CHECK(report.at("privacy").is_null());
}

TEST_CASE("a finite gradient that overflows the step rule ends the run, and is not saved") {
  std::vector<float> x(kDimension, 1);
  const std::vector<float> before = x;
  const COptimizer optimizer =
      c_optimizer({"nodes", "1", "algorithm", "allreduce", "momentum", "0.9", "lr", "1e10"}, x);
  std::vector<float> gradient(kDimension, 1e30F);
  CHECK(sotto_optimizer_step(optimizer.get(), gradient.data(), kDimension) == SOTTO_NON_FINITE);
  CHECK(says("go on from a checkpoint, with a lower learning rate"));
  CHECK(sotto_optimizer_set_learning_rate(optimizer.get(), 0.1) == SOTTO_OK);
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  CHECK(sotto_optimizer_step(optimizer.get(), gradient.data(), kDimension) == SOTTO_NON_FINITE);
  CHECK(c_state(optimizer.get()).empty());
  CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_NON_FINITE);
  CHECK(x == before);
  CHECK(c_report(optimizer.get()).at("round") == 0);
}

TEST_CASE("a peer that leaves is a fault that stays") {
  const CStore store = c_store();
  c_play(2, [&](int rank) {
    std::vector<float> x(kDimension);
    const COptimizer optimizer =
        c_optimizer({"nodes", "2", "rank", std::to_string(rank)}, x, store.get());
    if (rank == 1) {
      CHECK(step_to(optimizer.get(), rank, x, 3) == SOTTO_OK);
      return;
    }
    CHECK(step_to(optimizer.get(), rank, x, 100) == SOTTO_PEER_LOST);
    const std::string first = sotto_last_error();
    CHECK(says("node 1"));
    CHECK(sotto_optimizer_step(optimizer.get(), x.data(), x.size()) == SOTTO_PEER_LOST);
    CHECK(first == sotto_last_error());
    CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_PEER_LOST);
  });
}

TEST_CASE("a second thread is turned away while one waits for peers") {
  const CStore store = c_store();
  std::vector<float> x(kDimension);
  std::vector<float> y(kDimension);
  const COptimizer optimizer = c_optimizer({"nodes", "2", "rank", "0"}, x, store.get());
  const COptimizer peer = c_optimizer({"nodes", "2", "rank", "1"}, y, store.get());
  std::atomic<bool> over = false;
  std::thread waits([&] {
    CHECK(sotto_optimizer_connect(optimizer.get()) == SOTTO_OK);
    over = true;
  });
  std::uint64_t round = 0;
  while (sotto_optimizer_round(optimizer.get(), &round) == SOTTO_OK && !over) {
    std::this_thread::yield();
  }
  CHECK_FALSE(over);
  CHECK(says("another thread is inside a call"));
  CHECK(sotto_optimizer_connect(peer.get()) == SOTTO_OK);
  waits.join();
  CHECK(sotto_optimizer_round(optimizer.get(), &round) == SOTTO_OK);
}

TEST_CASE("an interrupt ends the making of an optimizer that waits, and what it waits for later") {
  sotto_interrupt* raised = nullptr;
  REQUIRE(sotto_interrupt_create(&raised) == SOTTO_OK);
  CInterrupt interrupt(raised);
  std::vector<float> x(kDimension);
  const CStore store = c_store();
  const Words words = {"nodes", "2", "rank", "0", "timeout", "3600"};
  const COptimizer waits =
      c_optimizer_from(c_setup({.store = store.get(), .interrupt = raised}).get(), words, x);
  REQUIRE(waits != nullptr);
  CHECK(sotto_interrupt_raise(raised) == SOTTO_OK);
  const CSetup setup = c_setup({.interrupt = raised});
  for (const std::string url : {"tcp://nobody.invalid:4000", "redis://nobody.invalid:4000"}) {
    sotto_optimizer* made = nullptr;
    const Words elsewhere = {"nodes", "2", "rank", "1", "timeout", "3600", "rendezvous", url};
    const sotto_status status = sotto_optimizer_create_from(
        setup.get(), as_settings(elsewhere).data(), x.data(), x.size(), &made);
    CAPTURE(sotto_last_error());
    const bool lacks = std::string(sotto_last_error()).find("build lacks") != std::string::npos;
    CHECK((status == SOTTO_STOPPED || lacks));
    CHECK(made == nullptr);
  }
  interrupt.reset();
  CHECK(sotto_optimizer_connect(waits.get()) == SOTTO_STOPPED);
  CHECK(sotto_interrupt_create(nullptr) == SOTTO_REFUSED);
  CHECK(sotto_interrupt_raise(nullptr) == SOTTO_REFUSED);
}

TEST_CASE("the tensors of a layout are told apart") {
  sotto_layout* made = nullptr;
  REQUIRE(sotto_layout_create(&made) == SOTTO_OK);
  const CLayout layout(made);
  const std::size_t shape[] = {4, 9};
  CHECK(sotto_layout_add(layout.get(), "weight", 2, shape) == SOTTO_OK);
  CHECK(sotto_layout_add(layout.get(), "bias", 1, shape) == SOTTO_OK);
  CHECK(sotto_layout_add(layout.get(), "two\nlines", 1, shape) == SOTTO_REFUSED);
  std::vector<float> x(kDimension);
  const Words words = {"nodes", "1", "algorithm", "choco", "compressor", "topk:0.1; bias=none"};
  CHECK(c_optimizer(words, x, nullptr, layout.get()).get() != nullptr);
  std::vector<float> longer(kDimension + 1);
  CHECK(c_optimizer(words, longer, nullptr, layout.get()).get() == nullptr);
  CHECK(says("40"));
}

TEST_CASE("a setup makes optimizers of what was set, which may be gone by then") {
  const Words choco = {"algorithm", "choco", "compressor", "topk:0.1; bias=none"};
  sotto_layout* tensors = nullptr;
  REQUIRE(sotto_layout_create(&tensors) == SOTTO_OK);
  CLayout layout(tensors);
  const std::size_t shape[] = {4, 9};
  REQUIRE(sotto_layout_add(tensors, "weight", 2, shape) == SOTTO_OK);
  REQUIRE(sotto_layout_add(tensors, "bias", 1, shape) == SOTTO_OK);
  CStore store = c_store();
  CSetup setup = c_setup({.layout = layout.get(), .store = store.get()});
  layout.reset();
  store.reset();
  Models x = zeros();
  std::vector<COptimizer> nodes;
  for (int rank = 0; rank < kNodes; ++rank) {
    auto& mine = x[static_cast<std::size_t>(rank)];
    nodes.push_back(c_optimizer_from(setup.get(), words_of(rank, choco), mine));
    REQUIRE_MESSAGE(nodes.back() != nullptr, std::string(sotto_last_error()));
  }
  CHECK(c_report(nodes[0].get()).at("transport") == "inproc");
  // Null takes back what was set.
  std::vector<float> longer(kDimension + 1);
  const Words alone = {"nodes", "1", "algorithm", "dpsgd"};
  CHECK(c_optimizer_from(setup.get(), alone, longer) == nullptr);
  CHECK(says("40"));
  CHECK(sotto_optimizer_setup_set_layout(setup.get(), nullptr) == SOTTO_OK);
  CHECK(c_optimizer_from(setup.get(), alone, longer) != nullptr);
  setup.reset();
  c_play(kNodes, [&](int rank) {
    auto& mine = x[static_cast<std::size_t>(rank)];
    CHECK(step_to(nodes[static_cast<std::size_t>(rank)].get(), rank, mine, 3) == SOTTO_OK);
  });
  CHECK(c_optimizer_from(nullptr, words_of(0, choco), x[0]) == nullptr);
  CHECK(says("setup: a null pointer is refused"));
  CHECK(sotto_optimizer_setup_create(nullptr) == SOTTO_REFUSED);
  CHECK(sotto_optimizer_setup_set_store(nullptr, nullptr) == SOTTO_REFUSED);
  sotto_optimizer_setup_destroy(nullptr);
}

TEST_CASE("a run of C's tells who watches it what all nodes do, and takes their mean") {
  const Scratch scratch;
  const auto log = (scratch.path() / "run.jsonl").string();
  const auto trace = (scratch.path() / "trace.json").string();
  Models x = zeros();
  Models means = zeros();
  const CStore store = c_store();
  c_play(kNodes, [&](int rank) {
    auto& mine = x[static_cast<std::size_t>(rank)];
    auto& mean = means[static_cast<std::size_t>(rank)];
    const COptimizer optimizer = c_optimizer(
        words_of(rank, {"log-json", log, "trace", trace, "report-every", "5"}), mine, store.get());
    REQUIRE(optimizer != nullptr);
    REQUIRE(step_to(optimizer.get(), rank, mine, 12) == SOTTO_OK);
    double distance = -1;
    CHECK(sotto_optimizer_mean(optimizer.get(), mean.data(), mean.size(), &distance) == SOTTO_OK);
    CHECK(distance > 0);
    CHECK(sotto_optimizer_mean(optimizer.get(), mean.data(), mean.size() - 1, nullptr) ==
          SOTTO_REFUSED);
    CHECK(sotto_optimizer_evaluated(optimizer.get(), 0.5,
                                    std::numeric_limits<double>::quiet_NaN()) == SOTTO_OK);
    CHECK(sotto_optimizer_finish(optimizer.get()) == SOTTO_OK);
    CHECK(sotto_optimizer_evaluated(optimizer.get(), 0.25, 0.5) == SOTTO_OK);
  });
  CHECK(means == Models(kNodes, means[0]));
  std::ifstream in(log);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  REQUIRE(lines.size() == 7);  // began, rounds 5 and 10, a loss, the end, a loss, ended
  CHECK(lines[3].at("test_loss") == 0.5);
  CHECK(lines[3].at("consensus_distance").get<double>() > 0);
  CHECK(lines[4].at("nodes").size() == kNodes);
  CHECK(lines[5].at("test_accuracy") == 0.5);
  CHECK(lines[5].at("nodes").size() == kNodes);
  CHECK(lines[6].at("ok") == true);
  // Lines of before stay, also where the next one is refused.
  CHECK(c_optimizer({"nodes", "1", "log-json", log, "compressor", "qunat:8"}, x[0]) == nullptr);
  CHECK(std::filesystem::file_size(log) > 1000);
  for (int rank = 0; rank < kNodes; ++rank) {
    CHECK(
        std::filesystem::exists(scratch.path() / ("trace.node-" + std::to_string(rank) + ".json")));
  }
  CHECK_MESSAGE(c_optimizer({"nodes", "1", "log-json", "/proc/none/x"}, x[0]) == nullptr,
                std::string(sotto_last_error()));
  CHECK(std::string(sotto_last_error()).starts_with("log_json: '/proc/none/x'"));
  CHECK(c_optimizer({"nodes", "1", "report-every", "0"}, x[0]) == nullptr);
}

}  // namespace sotto::test::c_optimizer_test
