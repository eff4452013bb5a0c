// Tables as hospitals have them: what is read of each, or in which words it is refused.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/trainers/data/data_check.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"

namespace sotto::test::hospital_tables_test {

namespace {

constexpr int kRows = 40;

/// A header, and what `row` makes of each number.
template <typename Row>
std::string table(const std::string& header, const Row& row) {
  std::string text = header + "\n";
  for (int i = 0; i < kRows; ++i) {
    text += row(i) + "\n";
  }
  return text;
}

/// What `sotto data check` sees; `more` are the task's parameters.
DataCheck seen(const std::string& text, const std::string& more = "") {
  const Scratch scratch;
  return check_data("csv:" + scratch.write("t.csv", text).string() + more);
}

std::string all(const std::vector<std::string>& warnings) {
  return fmt::format("{}", fmt::join(warnings, "\n"));
}

int age(int i) { return 20 + i * 7 % 60; }

}  // namespace

TEST_CASE("hospital tables: German Excel, with a byte-order mark, semicolons, commas and CRLF") {
  std::string text =
      "\xEF\xBB\xBF"
      "Alter;Größe;Gewicht;Befund\r\n";
  for (int i = 0; i < kRows; ++i) {
    text +=
        fmt::format("{};1,{};{},5;{}\r\n", age(i), 50 + i, 60 + i % 9, i % 2 ? "krank" : "gesund");
  }
  const DataCheck check = seen(text);
  CHECK(check.refusal.empty());
  CHECK(check.features == 3);
  CHECK(check.columns[1].least == 1.5);
  CHECK(check.classes[0].name == "gesund");
  CHECK(check.warnings.empty());
}

TEST_CASE("hospital tables: rows without any value below a table are passed over") {
  const std::string text = table(
      "age;bmi;label", [](int i) { return fmt::format("{};{};{}", age(i), 20 + i % 9, i % 2); });
  const DataCheck plain = seen(text);
  const DataCheck check = seen(text + ";;\n  ; ;\n;;\n");
  CHECK(check.refusal.empty());
  CHECK(check.rows == kRows);
  CHECK(check.columns[0].missing == 0);
  CHECK(check.train == plain.train);
}

TEST_CASE("hospital tables: a title above the header is told from a column without a name") {
  const auto row = [](int i) { return fmt::format("{},{},{}", age(i), 20 + i % 9, i % 2); };
  CHECK(contains(seen("Export of 2026-01-31,,\n" + table("age,bmi,label", row)).refusal,
                 "line 1: 1 of 3 columns have a name there: if it is a title, take it out"));
  CHECK(contains(seen(table("age,,label", row)).refusal, "column 2 has no name; give it one"));
}

TEST_CASE("hospital tables: numbers that stand for missing values are warned of") {
  const auto with = [](int code) {
    return seen(table("age,bmi,label", [&](int i) {
      return fmt::format("{},{},{}", age(i), i % 9 == 0 ? code : 20 + i % 11, i % 2);
    }));
  };
  for (const int code : {-9, -999, 999, 9999}) {
    const DataCheck check = with(code);
    CAPTURE(code);
    CHECK(check.refusal.empty());
    CHECK(contains(all(check.warnings),
                   fmt::format("column 'bmi': {} stands far from all other values", code)));
  }
  CHECK(with(25).warnings.empty());
  CHECK(with(-999).warnings.size() == 1);
  CHECK(seen(table("age,cost,label", [](int i) {
          return fmt::format("{},{},{}", age(i), i % 9 == 0 ? 999 : 200 + 20 * i, i % 2);
        })).warnings.empty());
}

TEST_CASE("hospital tables: a missing answer is no reason to leave the answers out") {
  const auto row = [](int i) {
    return fmt::format("{},{},{}", age(i), i % 10 == 3 ? "" : fmt::to_string(100.5 + i), i % 2);
  };
  const DataCheck classes = seen(table("age,label,sex", row), ",regression,target=label");
  CHECK(contains(classes.refusal, "line 5: column 'label': '' is empty"));
  CHECK(contains(classes.refusal, ",skip-missing"));
  CHECK_FALSE(contains(classes.refusal, "drop"));
  const DataCheck skipped =
      seen(table("age,cost,sex", row), ",regression,target=cost,skip-missing");
  CHECK(skipped.refusal.empty());
  CHECK(skipped.train + skipped.test == kRows - 4);
  CHECK(contains(seen(table("age,cost,sex", row)).refusal, ",drop=cost"));
}

TEST_CASE("hospital tables: words and limits where a regression needs numbers") {
  const auto words = [](int i) { return fmt::format("{},{}", age(i), i % 2 ? "ill" : "well"); };
  const DataCheck target = seen(table("age,state", words), ",regression");
  CHECK(contains(target.refusal, "words are classes: leave `regression` out"));
  CHECK_FALSE(contains(target.refusal, "drop"));
  const DataCheck limit = seen(table("age,crp,label", [](int i) {
    return fmt::format("{},{},{}", age(i), i % 7 == 1 ? "<0.5" : fmt::format("{}.5", i), i % 2);
  }));
  CHECK(contains(limit.refusal, "'<0.5' is a limit of what was measured; write a number"));
}

TEST_CASE("hospital tables: numbers of patients are named in the advice") {
  const DataCheck check = seen(table("patient,age,label", [](int i) {
    return fmt::format("{},{},{}", 1000 + 3 * i, age(i), i % 2);
  }));
  CHECK(check.refusal.empty());
  CHECK(contains(all(check.warnings), ",drop=patient"));
}

TEST_CASE("hospital tables: a note of several lines is named as one") {
  const DataCheck check = seen(table("age,note,label", [](int i) {
    return fmt::format("{},\"said \"\"no\"\"\nand left\",{}", age(i), i % 2);
  }));
  CHECK(contains(check.refusal, "line 2: a quote is not closed in this line"));
  CHECK(contains(check.refusal, "take line breaks out of it"));
}

TEST_CASE("hospital tables: row names of R, dates, quotes, one value throughout") {
  const DataCheck named = seen(table("\"age\",\"ward\",\"label\"", [](int i) {
    return fmt::format("\"P{}\",{},3,\"{}\"", i, age(i), i % 2 ? "ill" : "not, yet");
  }));
  CHECK(named.refusal.empty());
  CHECK(named.features == 2);
  CHECK(named.classes[1].name == "not, yet");
  CHECK(contains(all(named.warnings), "column 'ward': the same in all rows"));
  const DataCheck dated = seen(table("admitted;age;label", [](int i) {
    return fmt::format("{:02}.01.2026;{};{}", 1 + i % 28, age(i), i % 2);
  }));
  CHECK(contains(dated.refusal, "looks like a date"));
  CHECK(contains(dated.refusal, ",drop=admitted"));
}

}  // namespace sotto::test::hospital_tables_test
