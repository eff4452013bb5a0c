// Where in a site's file a setting stands, and what refuses it in words of that file: libraries and
// the checks that are shared with `sotto train` call settings by names of their own.
//
// Plain values; pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace sotto::cli {

class SitePlaces {
 public:
  SitePlaces() = default;
  SitePlaces(std::string path, const toml::table& file);

  /// "site.toml:9: training.lr"; where the key is not there, the line of its table.
  std::string of(const std::string& key) const;
  /// "learning_rate: 0 is refused: …" and "--lr: …" → "site.toml:9: training.lr: …". What begins
  /// with no setting's name is said of [training], but what names this file's place already.
  std::string blame(std::string_view message) const;

 private:
  /// The key that a message begins with; empty: none.
  std::string leading_key(std::string_view message) const;

  std::string path_;
  std::map<std::string, unsigned> lines_;  ///< of keys and tables, "training.lr"
};

/// Options of `sotto train` that stand in a site's [training] too, as "--lr".
bool is_training_option(std::string_view option);

}  // namespace sotto::cli
