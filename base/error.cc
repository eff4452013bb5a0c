#include <sotto/base/error.h>

#include <utility>

#include <fmt/format.h>

namespace sotto {
namespace {

std::string whole(std::string_view field, const std::optional<std::string>& value,
                  const SettingText& reason, const Spelling& spelling) {
  const std::string why = reason.text(spelling);
  if (field.empty()) {
    return printable(why);
  }
  const std::string subject = spelling.subject(field);
  return printable(value ? fmt::format("{}: '{}' is refused: {}", subject, *value, why)
                         : fmt::format("{}: {}", subject, why));
}

}  // namespace

Error::Error(Parts parts)
    : std::runtime_error(whole(parts.field, parts.value, parts.reason, Spelling())),
      parts_(std::make_shared<const Parts>(std::move(parts))) {}

Error::Error(const SettingText& reason)
    : Error(Parts{.field = {}, .value = std::nullopt, .reason = reason}) {}

Error::Error(std::string_view field, const SettingText& reason)
    : Error(Parts{.field = std::string(field), .value = std::nullopt, .reason = reason}) {}

Error::Error(std::string_view field, std::string_view value, const SettingText& reason)
    : Error(Parts{.field = std::string(field), .value = std::string(value), .reason = reason}) {}

std::string Error::render(const Spelling& spelling) const {
  return whole(parts_->field, parts_->value, parts_->reason, spelling);
}

Error Error::renamed(std::string_view field) const {
  return Error(Parts{std::string(field), parts_->value, parts_->reason});
}

Error Error::about(std::string_view field) const {
  return parts_->field.empty() ? renamed(field) : *this;
}

void refuse(std::string_view field, std::string_view value, const SettingText& reason) {
  throw Error(field, value, reason);
}

void require_between(std::string_view field, std::size_t value, std::size_t least,
                     std::size_t most) {
  if (value < least || value > most) {
    refuse(field, fmt::format("{}", value), fmt::format("take {} to {}", least, most));
  }
}

}  // namespace sotto
