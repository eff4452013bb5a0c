#include <sotto/study/internal/task_settings.h>

#include <algorithm>
#include <array>

#include <sotto/study/internal/setting_text.h>
#include <sotto/study/train/train_options.h>

namespace sotto::study {
namespace {

/// Settings of `sotto train` that a scenario says otherwise, or that make no sense in one.
constexpr auto kNotInTasks = std::to_array<std::string_view>(
    {"nodes", "transport", "rendezvous", "bind", "insecure", "streams", "key", "peers", "local",
     "checkpoint", "resume", "algorithm", "compressor", "gradient-time", "seed"});

}  // namespace

bool stands_in_task(const Setting& setting) {
  return std::ranges::find(kNotInTasks, setting.name) == kNotInTasks.end();
}

bool stands_in_task(std::string_view name) {
  TrainOptions unused;
  const auto groups = train_settings(unused);
  const Setting* setting = find_setting(groups, name);
  return setting != nullptr && stands_in_task(*setting);
}

}  // namespace sotto::study
