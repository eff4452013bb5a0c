// The settings of a planned run as JSON. Pure functions; thread-safe.
#pragma once

#include <optional>

#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/study/json/figures.h>
#include <sotto/study/train/train_plan.h>

namespace sotto::study {

/// The values of an algorithm's hyperparameters, from its specification; null: it finds one itself.
Json hyperparameters_json(std::string_view algorithm);
/// What noise hides, and what it costs; null without it.
Json privacy_config_json(const std::optional<PrivacyOptions>& privacy);

/// All settings as used, as results have them under "config".
Json train_config_json(const RunSettings& settings);

}  // namespace sotto::study
