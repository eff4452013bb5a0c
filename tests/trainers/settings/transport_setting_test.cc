// The setting `transport` and the table of transports say the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include <sotto/comm/transport.h>
#include <sotto/trainers/settings/optimizer_settings.h>

namespace sotto::test::transport_setting_test {

TEST_CASE("the help of the setting transport names every transport of the table, and its nodes") {
  OptimizerSettings settings;
  std::string help;
  for (const SettingGroup& group : settings_of(settings)) {
    for (const Setting& setting : group.settings) {
      help += setting.name == "transport" ? setting.help : "";
    }
  }
  REQUIRE_FALSE(help.empty());
  CHECK(transports().size() >= 4);
  for (const TransportInfo& info : transports()) {
    const std::string nodes = info.processes ? " (processes)" : " (threads)";
    CHECK_MESSAGE(help.find(std::string(info.name) + nodes) != std::string::npos, help);
  }
}

}  // namespace sotto::test::transport_setting_test
