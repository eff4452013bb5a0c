// Texts as programs write them: encodings, separators, and formats that are none.
#include <sotto/base/decoded_text.h>

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/delimited_text.h>
#include <sotto/base/error.h>

namespace sotto::test::decoded_text_test {

using namespace std::string_view_literals;

namespace {

/// ASCII as UTF-16.
std::string wide(std::string_view text, bool little) {
  std::string bytes;
  for (const char c : text) {
    bytes += little ? std::string{c, '\0'} : std::string{'\0', c};
  }
  return bytes;
}

std::string refusal_of(std::string bytes) {
  try {
    decode_text(std::move(bytes), "data");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> fields_of(std::string_view line, char separator) {
  FieldSplitter splitter({.separator = separator}, 10);
  const auto& fields = splitter.split(line);
  CHECK(splitter.fault().empty());
  return {fields.begin(), fields.end()};
}

}  // namespace

TEST_CASE("UTF-16 is read in both orders, with a byte-order mark and without") {
  constexpr std::string_view kText = "size\tprice\r\n3\t4\r\n";
  for (const bool little : {true, false}) {
    for (const bool mark : {true, false}) {
      const std::string begin = !mark ? "" : little ? "\xFF\xFE" : "\xFE\xFF";
      const DecodedText decoded = decode_text(begin + wide(kText, little), "data");
      CHECK(decoded.text == kText);
      CHECK(decoded.encoding == (little ? "UTF-16LE" : "UTF-16BE"));
      CHECK(decoded.byte_order_mark == mark);
    }
  }
  CHECK(decode_text("\xFF\xFE\xAC\x20\x3D\xD8" + std::string("\x00\xDE", 2), "data").text == "€😀");
  CHECK(refusal_of("\xFF\xFE" + wide("a,b\n", true) + "x").find("UTF-16") != std::string::npos);
  CHECK(refusal_of("\xFF\xFE" + std::string("\x00\xDC", 2)).find("half of a pair") !=
        std::string::npos);
  CHECK(refusal_of(std::string("\xFF\xFE\0\0", 4)).find("UTF-32") != std::string::npos);
}

TEST_CASE("what is no UTF-8 is Windows-1252, and bytes that are learned stay") {
  const DecodedText decoded = decode_text("M\xFCnchen \x80 5", "data");
  CHECK(decoded.text == "München € 5");
  CHECK(decoded.encoding == "Windows-1252");
  CHECK(unpack_text("M\xFCnchen", "data") == "M\xFCnchen");
  CHECK(unpack_text("<html>", "data") == "<html>");
  CHECK_THROWS_AS(unpack_text("\x28\xB5\x2F\xFD\x01", "data"), Error);
  CHECK(decode_text("\xEF\xBB\xBFñ", "data").text == "ñ");
  for (const std::string bad :
       {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80"}) {
    CHECK_FALSE(is_utf8(bad));
  }
}

TEST_CASE("formats that are no text are named, and texts that begin like one are read") {
  const std::string controls(60, '\x01');
  for (const auto& [bytes, name] : std::vector<std::pair<std::string, std::string>>{
           {"PK\x03\x04" + controls, "zip"},
           {"PK\x03\x04" + controls + "xl/workbook.xml", "Excel"},
           {"\x28\xB5\x2F\xFD" + controls, "zstd"},
           {"BZh91AY&SY" + controls, "bzip2"},
           {"\xFD"
            "7zXZ" +
                std::string(1, '\0') + controls,
            "xz"},
           {"PAR1" + controls, "Parquet"},
           {"\x89HDF\r\n\x1A\n" + controls, "HDF5"},
           {"\x93NUMPY" + controls, "NumPy"},
           {"\x80\x04\x95" + controls, "pickle"},
           {"SQLite format 3" + std::string(1, '\0') + controls, "SQLite"},
           {"<!DOCTYPE html>", "web page"},
           {"version https://git-lfs.example/spec/v1\n", "Git LFS"},
       }) {
    const std::string shown_name(name);
    CAPTURE(shown_name);
    CHECK(refusal_of(bytes).find(name) != std::string::npos);
  }
  for (const std::string text : {"PAR1,b\n1,2\n", "ORC,b\n1,2\n", "BZh,b\n1,2\n", "1,2\n"}) {
    CHECK(refusal_of(text).empty());
  }
}

TEST_CASE("the separator is what all lines have, outside of quotes") {
  CHECK(find_dialect("a,b\n1,2\n").separator == ',');
  CHECK(find_dialect("a;b;c\n1,5;2;3\n4,25;5;6\n").separator == ';');
  CHECK(find_dialect("a\tb\n1,5\t2\n").separator == '\t');
  CHECK(find_dialect("a|b\n1|2\n").separator == '|');
  CHECK(find_dialect("# a comment, with commas\n1 2\n3  4\n", "#").separator == ' ');
  CHECK(find_dialect("\"a;b;c\",d\n1,2\n").separator == ',');
  CHECK(find_dialect("one column\n1\n2\n").separator == ',');
  CHECK(find_dialect("").separator == ',');
  CHECK(
      find_dialect(std::string(2000, 'a') + "\t" + std::string(2000, 'b') + "\n1\t2\n").separator ==
      '\t');
}

TEST_CASE("fields lose their blanks and quotes, and lines end in three ways") {
  using Fields = std::vector<std::string>;
  CHECK(fields_of(" 1 , \"a,\"\"b\"\"\" ,", ',') == Fields{"1", "a,\"b\"", ""});
  CHECK(fields_of("1\t\t 2", '\t') == Fields{"1", "", "2"});
  CHECK(fields_of("  1 \t 2", ' ') == Fields{"1", "2"});
  FieldSplitter splitter({}, 2);
  (void)splitter.split("1,2,3");
  CHECK(splitter.fault().find("more than 2") != std::string::npos);
  std::string_view rest = "a\r\nb\rc\n\nd";
  std::vector<std::string_view> lines;
  for (std::string_view line; take_line(rest, line);) {
    lines.push_back(line);
  }
  CHECK(lines == std::vector<std::string_view>{"a", "b", "c", "", "d"});
}

}  // namespace sotto::test::decoded_text_test
