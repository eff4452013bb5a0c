// A loss that jumps: told where what came may be the reason, and not where a batch alone is.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/sites/process/site_guard.h>

#include "sites/core/liars.h"

namespace sotto::test::site_guard_test {

TEST_CASE("a loss that jumps is told where the parcels moved the model farther than usual") {
  bool lies = false;
  SiteNetworkOptions options;
  options.sites = 3;
  options.step = {.learning_rate = 0.1};
  options.gradient = [](std::size_t site, Round /*round*/, std::span<const float> x,
                        std::span<float> g) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = x[k] - (k == site ? 1.0F : 0.0F);
    }
  };
  Liars scene(options, {2}, [&](sites::Message& message, std::vector<std::byte>& payload) {
    if (lies && std::holds_alternative<sites::Parcel>(message)) {
      set_values(payload, 100);
    }
    return true;
  });
  std::vector<SiteEvent> told;
  const sites::Site& own = scene.network.site(0);
  SiteGuard guard(scene.network.site(0), SiteTeller(own, [&](const SiteEvent& event) {
                    CHECK(event.round == own.round());
                    told.push_back(event);
                  }));
  const auto rounds = [&](int count) {
    for (int k = 0; k < count; ++k) {
      scene.round();
      guard.look_at(0.01);
    }
  };
  rounds(40);
  scene.round();
  guard.look_at(0.5);  // an image that is hard, among models that move as always
  CHECK(guard.jumps() == 0);
  rounds(40);
  lies = true;
  scene.round();
  lies = false;
  guard.look_at(0.5);
  REQUIRE(guard.jumps() == 1);
  CHECK(told.back().kind == SiteEvent::Kind::loss_jump);
  CHECK_MESSAGE(told.back().text.find("the model was moved by: site-2 ") != std::string::npos,
                told.back().text);
  rounds(1);
  CHECK(guard.jumps() == 1);
}

}  // namespace sotto::test::site_guard_test
