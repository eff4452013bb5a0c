#include "field_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>

namespace sotto {
namespace {

constexpr std::array<std::string_view, 15> kMissing = {"",     "?",    "NA",   "N/A",  "n/a",
                                                       "na",   "NaN",  "nan",  "-nan", "NAN",
                                                       "null", "NULL", "#N/A", "<NA>", "NaT"};

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

bool equals_ignoring_case(std::string_view text, std::string_view small) {
  return text.size() == small.size() && small_letters(text) == small;
}

bool fits(double value) {
  return std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max());
}

/// The digits of a whole number without what sets groups of three apart; empty if there is no such
/// thing.
std::string without_groups(std::string_view field) {
  constexpr std::string_view kNarrowBlank = "\u202F";
  constexpr std::string_view kBlank = "\u00A0";
  std::string digits;
  std::size_t group = 0;  // digits since the last separator
  bool separated = false;
  for (std::size_t at = 0; at < field.size();) {
    const std::string_view rest = field.substr(at);
    const std::size_t width = rest.starts_with(kNarrowBlank)                ? kNarrowBlank.size()
                              : rest.starts_with(kBlank)                    ? kBlank.size()
                              : std::string_view(",. '_").find(rest[0]) < 5 ? 1
                                                                            : 0;
    if (is_decimal(rest[0]) || (at == 0 && (rest[0] == '-' || rest[0] == '+'))) {
      digits.push_back(rest[0]);
      group += is_decimal(rest[0]) ? 1U : 0U;
      ++at;
    } else if (width > 0 && group > 0 && group <= 3 && (!separated || group == 3)) {
      separated = true;
      group = 0;
      at += width;
    } else {
      return {};
    }
  }
  return separated && group == 3 ? digits : std::string();
}

/// The number without what sets groups of three apart, with a decimal point; empty if there is no
/// such thing.
std::string without_thousands(std::string_view field) {
  const std::size_t point = field.find('.');
  const std::size_t comma = field.find(',');
  if (point == std::string_view::npos || comma == std::string_view::npos) {
    return without_groups(field);
  }
  const std::size_t mark = field.find_last_of(".,");
  const std::string whole = without_groups(field.substr(0, mark));
  const std::string_view fraction = field.substr(mark + 1);
  const bool digits =
      !fraction.empty() && std::all_of(fraction.begin(), fraction.end(), is_decimal);
  return whole.empty() || !digits ? "" : fmt::format("{}.{}", whole, fraction);
}

bool looks_like_date(std::string_view field) {
  const auto parts = std::count_if(field.begin(), field.end(), [](char c) {
    return c == '-' || c == '/' || c == '.' || c == ':';
  });
  return parts >= 2 && field.size() >= 6 && is_decimal(field.front()) &&
         std::all_of(field.begin(), field.end(), [](char c) {
           return is_decimal(c) || std::string_view("-/.: TZ+").find(c) != std::string_view::npos;
         });
}

}  // namespace

FieldValue value_of(std::string_view field) {
  FieldValue value;
  if (const auto number = parse_number<double>(field); number && fits(*number)) {
    value.kind = FieldKind::number;
    value.number = *number;
    value.mark = field.find('.') == std::string_view::npos ? '\0' : '.';
    return value;
  }
  const std::size_t comma = field.find(',');
  if (comma != std::string_view::npos && field.find('.') == std::string_view::npos) {
    std::string pointed(field);
    pointed[comma] = '.';
    if (const auto number = parse_number<double>(pointed); number && fits(*number)) {
      value.kind = FieldKind::number;
      value.number = *number;
      value.mark = ',';
      return value;
    }
  }
  if (std::find(kMissing.begin(), kMissing.end(), field) != kMissing.end()) {
    value.kind = FieldKind::missing;
  } else if (equals_ignoring_case(field, "true") || equals_ignoring_case(field, "false")) {
    value.kind = FieldKind::boolean;
    value.number = equals_ignoring_case(field, "true") ? 1 : 0;
  }
  return value;
}

std::string why_no_number(std::string_view field) {
  if (parse_number<double>(field)) {
    return "does not fit a 32-bit float";
  }
  const std::string_view word =
      field.substr(field.starts_with('-') || field.starts_with('+') ? 1 : 0);
  if (equals_ignoring_case(word, "inf") || equals_ignoring_case(word, "infinity")) {
    return "is no finite number";
  }
  if (const std::string digits = without_thousands(field); !digits.empty()) {
    return fmt::format("is written with thousands separators; write {}", excerpt(digits));
  }
  if (field.ends_with('%')) {
    return "has a percent sign; write the number alone";
  }
  for (const std::string_view sign : {"$", "€", "£", "¥"}) {
    const bool before = field.starts_with(sign);
    if (before || field.ends_with(sign)) {
      const std::string_view amount =
          before ? field.substr(sign.size()) : field.substr(0, field.size() - sign.size());
      if (!amount.empty() && amount.find_first_not_of("0123456789.,'- ") == amount.npos) {
        return "has a currency sign; write the number alone";
      }
    }
  }
  if ((field.starts_with('<') || field.starts_with('>')) && field.size() > 1 &&
      parse_number<double>(trimmed(field.substr(field[1] == '=' ? 2 : 1)))) {
    return "is a limit of what was measured; write a number in its place, or leave it empty";
  }
  if (looks_like_date(field)) {
    return "looks like a date, which is no number; write it as numbers, e.g. as a year";
  }
  return std::string(kIsText);
}

}  // namespace sotto
