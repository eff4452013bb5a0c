// Another value for each setting of the optimizer that changes results.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sotto::test {

/// Names and values, as `set` (base/setting.h) takes them.
using GivenSettings = std::vector<std::pair<std::string, std::string>>;

/// Another value of a setting, and others without which it does nothing: perhaps the setting's
/// own, where its default is not to be compared with.
struct SettingChange {
  std::string value;
  GivenSettings with = {};
};

inline const GivenSettings kPrivateSettings = {{"clip-norm", "1"}, {"noise-multiplier", "1"}};

/// Settings of the optimizer that change results.
inline const std::map<std::string_view, SettingChange> kSettingChanges = {
    {"nodes", {"8"}},
    {"topology", {"complete"}},
    {"groups", {"0-1;2-3"}},
    {"weighting", {"shares", {{"algorithm", "pushsum"}, {"topology", "star"}}}},
    {"lazy", {"true"}},
    {"join", {"zeros"}},
    {"algorithm", {"choco"}},
    {"compressor", {"quant:4"}},
    {"consensus-stepsize", {"0.25", {{"algorithm", "choco"}}}},
    {"extrapolation-clock", {"32", {{"algorithm", "ecd"}}}},
    {"freeze-step", {"7", {{"algorithm", "onebit-adam"}}}},
    {"local-step-limit", {"3", {{"algorithm", "zeroone-adam"}, {"freeze-step", "9"}}}},
    {"rule", {"median", {{"algorithm", "robust"}}}},
    {"attack", {"sign-flip", {{"algorithm", "robust"}}}},
    {"delayed-gradient", {"true", {{"algorithm", "choco"}}}},
    {"buckets", {"3"}},
    {"step-rule", {"adam"}},
    {"lr", {"0.03"}},
    {"momentum", {"0.5"}},
    {"quasi-global-momentum", {"0.5"}},
    {"nesterov", {"true", {{"momentum", "0.5"}}}},
    {"weight-decay", {"0.01"}},
    {"beta1", {"0.8", {{"step-rule", "adam"}}}},
    {"beta2", {"0.9", {{"step-rule", "adam"}}}},
    {"epsilon", {"1e-6", {{"step-rule", "adam"}}}},
    {"bias-correction", {"never", {{"step-rule", "adam"}}}},
    {"trust-coefficient", {"0.01", {{"step-rule", "lars"}}}},
    {"update-scale", {"spectral", {{"step-rule", "muon"}}}},
    {"clip-norm", {"2"}},
    {"schedule", {"cosine"}},
    {"communication-interval", {"4"}},
    {"outer-step-rule", {"adam", {{"communication-interval", "4"}}}},
    {"outer-lr", {"0.7", {{"communication-interval", "4"}}}},
    {"outer-momentum", {"0.5", {{"communication-interval", "4"}}}},
    {"outer-nesterov", {"true", {{"communication-interval", "4"}, {"outer-momentum", "0.5"}}}},
    {"outer-after-mixing", {"true", {{"communication-interval", "4"}, {"algorithm", "choco"}}}},
    {"fragments", {"2", {{"communication-interval", "4"}, {"algorithm", "allreduce"}}}},
    {"sync-delay", {"1", {{"communication-interval", "4"}, {"algorithm", "allreduce"}}}},
    {"sync-mix", {"carry", {{"communication-interval", "4"}, {"algorithm", "allreduce"}}}},
    {"noise-multiplier", {"2", kPrivateSettings}},
    {"privacy-epsilon", {"5", kPrivateSettings}},
    {"privacy-delta", {"1e-6", kPrivateSettings}},
    {"privacy-unit", {"update", kPrivateSettings}}};

}  // namespace sotto::test
