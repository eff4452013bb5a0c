// Where in a site's file a setting stands, and how an error about it reads in words of that file.
//
// Plain values; pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <toml++/toml.h>

#include <sotto/base/error.h>

namespace sotto::cli {

/// The spelling of a site's file: `training.weighting = "shares"`.
class SitePlaces final : public Spelling {
 public:
  SitePlaces() = default;
  SitePlaces(std::string path, const toml::table& file);

  /// "site.toml:9: training.lr"; where the key is not there, the line of its table.
  std::string of(const std::string& key) const;
  /// "site.toml:9" of a setting of this name, which may be one of several tables; empty where the
  /// file does not set it.
  std::string line_of(std::string_view setting) const;
  /// The place of a setting's key, as `of` has it.
  std::string subject(std::string_view setting) const override;
  std::string mention(std::string_view setting, std::string_view value) const override;
  /// What the error says, in words of this file. What is about no setting is said of [training].
  std::string blame(const Error& error) const;

 private:
  /// The key that holds a setting; empty: none.
  std::string key_of(std::string_view setting) const;

  std::string path_;
  std::map<std::string, unsigned> lines_;  ///< line of each key and table, "training.lr"
};

}  // namespace sotto::cli
