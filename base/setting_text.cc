#include <sotto/base/setting_text.h>

#include <utility>

namespace sotto {

std::string Spelling::subject(std::string_view setting) const { return std::string(setting); }

std::string Spelling::mention(std::string_view setting, std::string_view value) const {
  std::string words(setting);
  if (!value.empty()) {
    words.append(" = ").append(value);
  }
  return words;
}

SettingText::SettingText(const char* text) : SettingText(std::string(text)) {}

SettingText::SettingText(std::string_view text) : SettingText(std::string(text)) {}

SettingText::SettingText(std::string text) {
  if (!text.empty()) {
    pieces_.push_back({.text = std::move(text), .value = {}, .setting = false});
  }
}

SettingText& SettingText::operator+=(const SettingText& more) {
  pieces_.insert(pieces_.end(), more.pieces_.begin(), more.pieces_.end());
  return *this;
}

std::string SettingText::text(const Spelling& spelling) const {
  std::string whole;
  for (const Piece& piece : pieces_) {
    whole += piece.setting ? spelling.mention(piece.text, piece.value) : piece.text;
  }
  return whole;
}

SettingText mention(std::string_view setting, std::string_view value) {
  SettingText named;
  named.pieces_.push_back(
      {.text = std::string(setting), .value = std::string(value), .setting = true});
  return named;
}

}  // namespace sotto
