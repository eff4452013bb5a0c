// Sites that train on real images, with a liar among them: what the honest ones lose by it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/trainers/tasks/task_registry.h>

#include "sites/core/liars.h"

namespace sotto::test::site_liars_test {

namespace {

constexpr std::size_t kHonest = 4;

/// The accuracy of the worst honest site after `rounds` rounds beside one that lies, or, without a
/// lie, that is honest too.
double worst_accuracy(sites::MixingKind exchange, const std::string& compressor, const Lie& lie) {
  const TaskFactory tasks(load_task("digits,train=1500,test=1000"),
                          {.model = "softmax", .batch = 32, .nodes = kHonest + 1});
  std::vector<std::unique_ptr<Task>> all;
  for (std::size_t k = 0; k <= kHonest; ++k) {
    all.push_back(tasks.make(static_cast<Rank>(k)));
  }
  SiteNetworkOptions options;
  options.sites = kHonest + 1;
  options.dimension = all[0]->dimension();
  options.exchange = exchange;
  options.compressor = compressor;
  options.step = {.learning_rate = 0.5};
  options.gradient = [&](std::size_t site, Round round, std::span<const float> x,
                         std::span<float> g) { all[site]->loss_and_gradient(round, x, g); };
  Liars scene(options, lie ? std::vector<std::size_t>{kHonest} : std::vector<std::size_t>{}, lie);
  scene.rounds(400);
  double worst = 1;
  for (std::size_t k = 0; k < kHonest; ++k) {
    CHECK(scene.network.state(k).round == 400);
    worst = std::min(worst, all[k]->evaluate(scene.network.site(k).parameters()).accuracy);
  }
  return worst;
}

}  // namespace

TEST_CASE("sites beside a liar lose no round, and one point of accuracy at most") {
  const std::vector<std::pair<std::string, Lie>> lies = {
      {"takes", only_takes},
      {"swallows", swallows},
      {"mints zeros for a while",
       [](sites::Message& message, std::vector<std::byte>& payload) {
         const auto* parcel = std::get_if<sites::Parcel>(&message);
         if (parcel != nullptr && parcel->round >= 100 && parcel->round < 130) {
           set_share(payload, 0.2, 1022);
           set_values(payload, 0);
         }
         return true;
       }},
      {"kills", [](sites::Message& message, std::vector<std::byte>& payload) {
         if (std::holds_alternative<sites::Parcel>(message)) {
           set_values(payload, 3e37F);
         }
         return true;
       }}};
  for (const auto exchange : {sites::MixingKind::push_sum, sites::MixingKind::gossip}) {
    const double calm = worst_accuracy(exchange, "none", {});
    CHECK(calm > 0.75);
    for (const auto& [label, lie] : lies) {
      const auto& name = label;  // Clang captures no binding
      if (name.starts_with("mints") && exchange == sites::MixingKind::gossip) {
        continue;
      }
      CAPTURE(name);
      CAPTURE(exchange == sites::MixingKind::gossip);
      CHECK(worst_accuracy(exchange, "none", lie) >= calm - 0.01);
    }
  }
}

}  // namespace sotto::test::site_liars_test
