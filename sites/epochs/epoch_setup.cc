#include <sotto/sites/epochs/epoch_setup.h>

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>

namespace sotto::sites {
namespace {

void check_name(std::string_view field, const std::string& name) {
  if (name.empty() || name.size() > kMostEpochName || one_line(name) != name) {
    refuse(field, name, fmt::format("1 … {} printable bytes", kMostEpochName));
  }
}

}  // namespace

StepSettings step_settings_of(const EpochSetup& setup, Round step) {
  return {.learning_rate = setup.learning_rate,
          .of = step,
          .further = setup.step_settings ? setup.step_settings(step) : 0};
}

EpochSetup approved(EpochSetup setup) {
  check_name("name", setup.name);
  for (const std::string& founder : setup.founders) {
    check_name("founders", founder);
  }
  if (setup.incarnation == 0 || setup.founders.size() > kMostEpochMembers) {
    refuse(
        "incarnation", fmt::format("{}", setup.incarnation),
        fmt::format("a number that is drawn, not 0, and at most {} founders", kMostEpochMembers));
  }
  if (setup.least < 1 || setup.least > setup.most || setup.most > kMostEpochMembers) {
    refuse("nodes", fmt::format("{}:{}", setup.least, setup.most),
           fmt::format("MIN:MAX with 1 ≤ MIN ≤ MAX ≤ {}", kMostEpochMembers));
  }
  return setup;
}

}  // namespace sotto::sites
