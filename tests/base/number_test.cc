// Numbers at the borders of their types, and texts that are none.
#include <cfenv>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/number.h>

namespace sotto::test::number_test {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
void check_is(std::string_view text, T value) {
  CAPTURE(text);
  const auto found = parse_number<T>(text);
  REQUIRE(found);
  CHECK(*found == value);
  CHECK(std::signbit(static_cast<double>(*found)) == std::signbit(static_cast<double>(value)));
}

}  // namespace

TEST_CASE("numbers: what is too small is 0 and what is too large an infinity") {
  check_is("5e-324", 5e-324);
  check_is("4.9406564584124654e-324", 5e-324);
  check_is("1e-400", 0.0);
  check_is("-1e-400", -0.0);
  check_is("1e-99999999999999999999999", 0.0);
  check_is("0e99999999999999999999999", 0.0);
  check_is("0.000e+400", 0.0);
  check_is("1e400", kInfinity);
  check_is("-1e400", -kInfinity);
  check_is("1e99999999999999999999999", kInfinity);
  check_is("1.7976931348623157e308", std::numeric_limits<double>::max());
  check_is("1.8e308", kInfinity);
  check_is("2.2250738585072011e-308", 2.2250738585072011e-308);
  // Where the exponent alone does not tell.
  check_is("0." + std::string(400, '0') + "1", 0.0);
  check_is("1" + std::string(400, '0'), kInfinity);
  check_is("0." + std::string(400, '0') + "1e401", 1.0);
  check_is("0." + std::string(400, '0') + "1e900", kInfinity);
  check_is("1" + std::string(400, '0') + "e-400", 1.0);
  check_is("1" + std::string(400, '0') + "e-900", 0.0);
  check_is("1" + std::string(400, '0') + ".5e-900", 0.0);
  check_is("." + std::string(400, '0') + "1", 0.0);
  check_is("1e-46", 0.0F);
  check_is("1e-45", 1e-45F);
  check_is("-3.5e38", -std::numeric_limits<float>::infinity());
  check_is("3.4028235e38", std::numeric_limits<float>::max());
  check_is("9007199254740993", 9007199254740992.0);
}

TEST_CASE("numbers: signs, points and exponents") {
  check_is("+1.5", 1.5);
  check_is("-0", -0.0);
  check_is("0", 0.0);
  check_is(".5", 0.5);
  check_is("5.", 5.0);
  check_is("1E3", 1000.0);
  check_is("1e+3", 1000.0);
  check_is("007", 7.0);
  check_is<int>("007", 7);
  check_is<std::uint64_t>("010", 10);  // not octal
  for (const char* text :
       {"",      " ",        "+",     "-",      ".",    "e5",    "+-1", "-+1", "--1",  "++1", "inf",
        "-inf",  "infinity", "nan",   "NaN(1)", "0x10", "0x1p3", "1e",  "1e+", "1 ",   " 1",  "1,5",
        "1_000", "1'000",    "1.2.3", "1f",     "½",    "１",    "1\n", "+.",  "1e5.0"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<double>(text));
    CHECK_FALSE(parse_number<float>(text));
    CHECK_FALSE(parse_number<std::uint64_t>(text));
  }
  CHECK_FALSE(parse_number<double>(std::string_view("1\0", 2)));
}

TEST_CASE("numbers: whole ones are digits that the type holds") {
  check_is<int>("2147483647", 2147483647);
  CHECK_FALSE(parse_number<int>("2147483648"));
  check_is<std::uint32_t>("4294967295", 4294967295U);
  CHECK_FALSE(parse_number<std::uint32_t>("4294967296"));
  check_is<std::int64_t>("9223372036854775807", std::numeric_limits<std::int64_t>::max());
  CHECK_FALSE(parse_number<std::int64_t>("9223372036854775808"));
  check_is<std::uint64_t>("9007199254740993", 9007199254740993U);
  check_is<std::uint64_t>("18446744073709551615", std::numeric_limits<std::uint64_t>::max());
  CHECK_FALSE(parse_number<std::uint64_t>("18446744073709551616"));
  for (const char* text : {"-1", "-0", "+1", "1.0", "1e3", "0b1", "0o7"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number<int>(text));
    CHECK_FALSE(parse_number<std::uint64_t>(text));
  }
  CHECK(parse_number<int>("5", 1, 5) == 5);
  CHECK_FALSE(parse_number<int>("6", 1, 5));
  CHECK_FALSE(parse_number<int>("0", 1, 5));
  CHECK_FALSE(parse_number<double>("1e400", 0.0, 1e308));
}

TEST_CASE("numbers: one is taken off the front, and nothing where there is none") {
  std::string_view text = "20ms";
  CHECK(take_number<double>(text) == 20);
  CHECK(text == "ms");
  CHECK_FALSE(take_number<double>(text));
  CHECK(text == "ms");
  text = "1e-400 s";
  CHECK(take_number<double>(text) == 0);
  CHECK(text == " s");
  text = "12x34";
  CHECK(take_number<int>(text) == 12);
  CHECK(text == "x34");
  text = "99999999999x";
  CHECK_FALSE(take_number<int>(text));
  CHECK(text == "99999999999x");
  text = "1em";
  CHECK(take_number<double>(text) == 1);
  CHECK(text == "em");
}

TEST_CASE("numbers: no locale changes them") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) {
      check_is("1.5", 1.5);
      CHECK_FALSE(parse_number<double>("1,5"));
    }
  }
  std::setlocale(LC_ALL, before.c_str());
}

}  // namespace sotto::test::number_test
