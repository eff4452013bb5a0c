// Texts that name settings. A flag, a key of a file and an argument of a function are the same
// setting in other words, so a library writes which setting it means, and whoever shows the text
// has it spelled as its readers write it.
//
// Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sotto {

/// How one place writes settings. Settings go by their names in snake case ("weight_decay"). This
/// class itself is the spelling of the library and of C++ programs.
class Spelling {
 public:
  Spelling() = default;
  Spelling(const Spelling&) = default;
  Spelling& operator=(const Spelling&) = default;
  virtual ~Spelling() = default;

  /// The setting that an error is about, as the error begins: "--lr", "site.toml:9: training.lr".
  /// A name that is no setting stays as it is.
  virtual std::string subject(std::string_view setting) const;
  /// A setting within a sentence, with the value that the sentence gives it; without a value where
  /// `value` is empty: "lazy = true", "--weighting shares".
  virtual std::string mention(std::string_view setting, std::string_view value) const;
};

/// A text in which settings are named as data. Plain texts become such texts by themselves, and
/// `+` joins them: `"give " + mention("clip_norm") + " too"`.
class SettingText {
 public:
  SettingText() = default;
  /// A text that names no setting.
  SettingText(const char* text);
  /// A text that names no setting.
  SettingText(std::string_view text);
  /// A text that names no setting.
  SettingText(std::string text);

  /// Appends `more`.
  SettingText& operator+=(const SettingText& more);
  friend SettingText operator+(SettingText first, const SettingText& second) {
    return first += second;
  }
  /// The whole text, with its settings in the words of a place.
  std::string text(const Spelling& spelling = Spelling()) const;

 private:
  friend SettingText mention(std::string_view setting, std::string_view value);

  struct Piece {
    std::string text;  ///< the name of a setting where `setting` is true
    std::string value;
    bool setting = false;
  };
  std::vector<Piece> pieces_;
};

/// A setting that a text names, and what the text would have it be: `mention("rule", "mean")`
/// is `rule = mean`, `--rule mean` and so on. A switch is "true" or "false".
SettingText mention(std::string_view setting, std::string_view value = {});

}  // namespace sotto
