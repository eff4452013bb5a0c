// Reads a sweep. Throws Error naming line and key of what is wrong. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sotto/study/scenario/scenario.h>
#include <sotto/study/toml/reader.h>

namespace sotto::study {

/// The scenarios of `sweep`, which `read` makes of the file with other values; empty: it has none.
/// `parse` gives the file's tables once more.
std::vector<std::shared_ptr<const SweepPoint>> read_sweep(
    const toml::table& file, const std::string& path, const std::function<toml::table()>& parse,
    const std::function<Scenario(const toml::table& changed)>& read);

}  // namespace sotto::study
