// Which of the models that neighbours give a late site begins at.
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/core/offered_models.h>

#include "sites/core/liars.h"
#include "sites/core/site_network.h"

namespace sotto::test::offered_models_test {

using sites::OfferedModels;

namespace {

SiteNetworkOptions trained_sites() {
  SiteNetworkOptions options;
  options.sites = 4;
  options.step = {.learning_rate = 0.1};
  options.gradient = [](std::size_t, Round, std::span<const float> x, std::span<float> g) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = x[k] - 1;
    }
  };
  return options;
}

/// Gives a late site a model of such values.
Lie gives_model(float value) {
  return [value](sites::Message& message, std::vector<std::byte>& /*payload*/) {
    if (auto* model = std::get_if<sites::Model>(&message)) {
      model->values.assign(model->values.size(), value);
    }
    return true;
  };
}

/// Site 3 has lost its state, and has no channel.
void lose_state(SiteNetwork& network) {
  network.kill(3);
  network.node(3).durable.clear();
  network.start(3);
}

}  // namespace

TEST_CASE("core: a late site waits for a second model and begins at the better one") {
  for (const float lie : {1e3F, 3e37F}) {
    CAPTURE(lie);
    Liars scene(trained_sites(), {2}, gives_model(lie));
    scene.rounds(20);
    lose_state(scene.network);
    scene.network.connect(2, 3);  // the liar is the first
    scene.deliver_all();
    CHECK_FALSE(scene.network.site(3).try_begin(false));
    CHECK_FALSE(scene.network.state(3).has_model);
    scene.network.connect(0, 3);
    scene.deliver_all();
    CHECK(scene.network.site(3).try_begin(false));
    CHECK(scene.network.state(3).giver == "site-0");
    CHECK(relative_distance(scene.network.site(3).parameters(),
                            scene.network.site(0).parameters()) < 0.5);
  }
}

TEST_CASE("core: a late site waits no longer than it is asked to for a second model") {
  Liars scene(trained_sites(), {2}, gives_model(3));
  scene.rounds(20);
  lose_state(scene.network);
  scene.network.connect(2, 3);
  scene.deliver_all();
  CHECK_FALSE(scene.network.site(3).try_begin(false));
  CHECK(scene.network.site(3).try_begin(true));
  CHECK(scene.network.state(3).giver == "site-2");
  // With one neighbour that it hears there is no other to wait for.
  SiteNetworkOptions options = trained_sites();
  options.edge = [](std::size_t from, std::size_t to) {
    return (from < 3 && to < 3) || from == 0 || to == 0;
  };
  Liars alone(options, {}, gives_model(3));
  alone.rounds(20);
  lose_state(alone.network);
  alone.network.connect(0, 3);
  alone.deliver_all();
  CHECK(alone.network.site(3).try_begin(false));
}

TEST_CASE("of three models the one that is nearest to the others is chosen, of two the nearer") {
  const std::vector<float> own = {0, 0};
  OfferedModels models;
  CHECK(models.empty());
  models.add({.peer = 4, .round = 7, .values = {0, 1}});
  CHECK_FALSE(models.enough());
  models.add({.peer = 4, .round = 8, .values = {9, 9}});  // of a peer that has given one
  CHECK_FALSE(models.enough());
  models.add({.peer = 1, .round = 5, .values = {3e37F, 3e37F}});
  CHECK(models.enough());
  OfferedModels two = models;
  CHECK(two.choose(own).peer == 4);
  CHECK(two.empty());
  OfferedModels three = models;
  three.add({.peer = 2, .round = 6, .values = {0, 1.5F}});
  three.add({.peer = 3, .round = 6, .values = {0, 0}});  // one too many
  CHECK_FALSE(three.has(3));
  CHECK(three.choose(own).values == std::vector<float>{0, 1});
  OfferedModels honest;
  honest.add({.peer = 0, .round = 1, .values = {5, 5}});
  honest.add({.peer = 1, .round = 1, .values = {5, 6}});
  honest.add({.peer = 2, .round = 1, .values = {0, 0}});  // near the own one, as a liar may be
  CHECK(honest.choose(own).peer == 0);
}

TEST_CASE("offered models keep their peers when the list changes") {
  OfferedModels models;
  models.add({.peer = 0, .round = 1, .values = {1}});
  models.add({.peer = 1, .round = 2, .values = {2}});
  models.rearrange(std::vector<std::size_t>{sites::kNobody, 0});
  CHECK(models.has(0));
  CHECK_FALSE(models.enough());
  CHECK(models.choose(std::vector<float>{0}).round == 2);
}

TEST_CASE("core: a late site waits for all models that are promised to it") {
  // The liar gives the initial model, which is the late site's own.
  Liars scene(trained_sites(), {2}, gives_model(0));
  scene.rounds(60);
  lose_state(scene.network);
  SiteNetwork& network = scene.network;
  network.connect(2, 3);
  scene.deliver_all();
  network.connect(0, 3);
  network.connect(1, 3);
  REQUIRE(network.deliver(1, 3).ok());  // its hello
  for (const auto& [from, to] :
       {std::pair<std::size_t, std::size_t>{3, 0}, {0, 3}, {3, 0}, {0, 3}}) {
    while (!network.queue(from, to).empty()) {
      REQUIRE(network.deliver(from, to).ok());
    }
  }
  CHECK_FALSE(network.site(3).try_begin(false));
  scene.deliver_all();
  CHECK(network.site(3).try_begin(false));
  CHECK(network.state(3).giver != "site-2");
  CHECK(relative_distance(network.site(3).parameters(), network.site(0).parameters()) < 0.5);
}

}  // namespace sotto::test::offered_models_test
