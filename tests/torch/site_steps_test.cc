// A torch optimizer that makes the steps of a site (sites/torch/site_optimizer.h).
#include "nets.h"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include <sotto/comm/transport.h>
#include <sotto/sites/torch/site_optimizer.h>

#include "support/skip.h"

using namespace torch_test;

namespace {

/// One site whose only peer never comes.
class Alone {
 public:
  Alone() : keys_(sotto::make_key_pair()) {
    for (const char* name : {"a", "b"}) {
      sotto::TrustedPeer line;
      line.rank = static_cast<sotto::Rank>(lines_.size());
      line.name = name;
      line.key = lines_.empty() ? keys_.public_key : sotto::make_key_pair().public_key;
      line.address = lines_.empty() ? "" : "127.0.0.1:9";  // it dials, in vain
      lines_.push_back(line);
    }
    std::filesystem::create_directories(folder_);
  }
  ~Alone() { std::filesystem::remove_all(folder_); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  sotto::SiteOptions options() const {
    sotto::SiteOptions options{
        .security = {.own = keys_, .peers = std::make_shared<sotto::AllowList>(lines_)}};
    options.name = "a";
    options.exchange = sotto::sites::MixingKind::gossip;
    options.found_after = std::chrono::milliseconds(1);
    options.communication_interval = 2;
    return options;
  }
  std::string folder() const { return folder_.string(); }

 private:
  sotto::KeyPair keys_;
  std::vector<sotto::TrustedPeer> lines_;
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("sotto-torch-site-{}", ::getpid());
};

template <typename Step>
void train(Net& net, const std::vector<Batch>& batches, const Step& step) {
  for (const Batch& batch : batches) {
    net->zero_grad();
    torch::mse_loss(net->forward(batch.x), batch.y).backward();
    step();
  }
}

bool equal(const Net& one, const Net& other) {
  const auto a = one->parameters();
  const auto b = other->parameters();
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (!torch::allclose(a[k], b[k], 1e-6, 1e-7)) {
      return false;
    }
  }
  return true;
}

std::unique_ptr<torch::optim::Optimizer> adam(const Net& net, double rate = 0.01) {
  return std::make_unique<torch::optim::Adam>(net->parameters(), torch::optim::AdamOptions(rate));
}

}  // namespace

TEST_CASE("a site alone steps as its torch optimizer does, over an end and a new start") {
  const auto is_zmq = [](const auto& one) { return one.name == "zmq" && one.available; };
  if (std::ranges::none_of(sotto::transports(), is_zmq)) {
    SOTTO_SKIP("built without ZeroMQ");
  }
  const Alone site;
  const auto batches = make_batches(12, 4);
  const std::vector<Batch> first(batches.begin(), batches.begin() + 6);
  const std::vector<Batch> second(batches.begin() + 6, batches.end());
  Net plain = make_net();
  auto reference = adam(plain);
  train(plain, batches, [&] { reference->step(); });
  Net net = make_net();
  {
    sotto::torch::SiteOptimizer optimizer(adam(net), site.options(), site.folder());
    optimizer.connect();
    train(net, first, [&] { optimizer.step(); });
    CHECK(optimizer.site().round() == 3);
    optimizer.finish();
  }
  Net again = make_net();  // the initial model, which the site agrees on
  sotto::torch::SiteOptimizer optimizer(adam(again), site.options(), site.folder());
  optimizer.connect();
  CHECK(equal(again, net));
  train(again, second, [&] { optimizer.step(); });
  optimizer.finish();
  CHECK(equal(again, plain));
}

TEST_CASE("a site that is told to stop before it has a model leaves its loop, and in good order") {
  const Alone site;
  const std::atomic<bool> told = true;
  sotto::SiteOptions options = site.options();
  options.stop = &told;
  options.found_after = std::chrono::hours(1);
  Net net = make_net();
  const Net before = make_net();
  sotto::torch::SiteOptimizer optimizer(net->named_parameters(), options, site.folder());
  optimizer.connect();
  CHECK(optimizer.site().over());
  const auto done = optimizer.step();  // a loop that asks too late
  CHECK(done.round == 0);
  CHECK(!done.exchanged);
  CHECK(equal(net, before));
  optimizer.finish();
}

TEST_CASE("sites compare the options of their torch optimizers, and a rate may be changed later") {
  const Alone site;
  Net net = make_net();
  Net other = make_net();
  sotto::torch::SiteOptimizer one(adam(net), site.options(), "");
  sotto::torch::SiteOptimizer two(adam(other, 0.02), site.options(), "");
  const auto settings = [](auto& optimizer) { return optimizer.site().result().report.settings; };
  CHECK(settings(one) != settings(two));
  CHECK(settings(one).find("Adam") != std::string::npos);
  one.param_groups().front().options().set_lr(0.5);
  CHECK(one.param_groups().front().options().get_lr() == 0.5);
}

TEST_CASE("what cannot make a site's steps is refused") {
  const Alone site;
  Net net = make_net();
  sotto::SiteOptions unsaved = site.options();
  unsaved.save_every = 50;
  CHECK_THROWS_WITH_AS(sotto::torch::SiteOptimizer(net->named_parameters(), unsaved, ""),
                       doctest::Contains("save_every"), sotto::Error);
  CHECK_THROWS_WITH_AS(sotto::torch::SiteOptimizer(nullptr, site.options(), ""),
                       doctest::Contains("optimizer"), sotto::Error);
  CHECK_THROWS_WITH_AS(
      sotto::torch::SiteOptimizer(std::make_unique<torch::optim::LBFGS>(net->parameters()),
                                  site.options(), ""),
      doctest::Contains("LBFGS"), sotto::Error);
}
