// What a field of a table is: a number, a place without one, true or false, or a word.
//
// Private to the loaders. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace sotto {

enum class FieldKind {
  number,   ///< finite, and fit for a 32-bit float
  missing,  ///< empty, or a word for it: NA, NaN, null, ?
  boolean,  ///< true or false, in any case
  text,     ///< anything else
};

/// A field, and what it is worth as a number: of a boolean 1 or 0.
struct FieldValue {
  FieldKind kind = FieldKind::text;
  double number = 0;
  char mark = 0;  ///< the decimal mark that it has: '.', ',' or none
};

/// Takes "1.5" and "1,5" alike for one and a half.
FieldValue value_of(std::string_view field);

/// The reason that `why_no_number` gives where nothing better can be said.
inline constexpr std::string_view kIsText = "is text";

/// Why a field is no number, in words that go on "'x' …": "has thousands separators; write 1234".
std::string why_no_number(std::string_view field);

}  // namespace sotto
