// Tables as people have them: headers, columns, labels and separators that are not as they should
// be are read, warned of or refused with what would do.
#include <cmath>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/trainers/data/data_check.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/tasks/task_registry.h>

#include "support/scratch.h"
#include "trainers/gzip.h"

namespace sotto::test::table_test {

using test::contains;

namespace {

using Row = std::function<std::string(int)>;

std::string table(const std::string& header, int rows, const Row& row) {
  std::string content = header + "\n";
  for (int i = 0; i < rows; ++i) {
    content += row(i) + "\n";
  }
  return content;
}

/// A task csv:…, with these parameters behind the file.
std::shared_ptr<const Dataset> load(const std::string& content, const std::string& more = "") {
  const test::Scratch scratch;
  return load_task("csv:" + scratch.write("table.csv", content).string() + more)->dataset;
}

std::string refusal(const std::string& content, const std::string& more = "") {
  const std::string message = test::refusal([&] { load(content, more); });
  CHECK(contains(message, "table.csv"));
  return message;
}

std::string warnings(const std::string& content, const std::string& more = "") {
  return fmt::format("{}", fmt::join(load(content, more)->warnings(), "\n"));
}

std::string two_features(int i) {
  return fmt::format("{},{},{}", i * 7 % 11, i * 5 % 13 + 0.5, i % 2);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a column that could be the label twice is refused, in any case") {
  CHECK(
      contains(refusal("a,label,b,label\n1,0,2,0\n2,1,3,1\n"), "'label'; a column's name stands"));
  CHECK(contains(refusal("a,a,y\n1,0,2\n2,1,3\n"), "columns 1 and 2 are both called 'a'"));
  const std::string both = table("LABEL,x,Class", 20, two_features);
  CHECK(contains(refusal(both), "target=LABEL"));
  CHECK(load(both, ",target=Class")->names().columns == Names{"LABEL", "x"});
  // Any spelling of a name will do where it is one column's alone.
  CHECK(load(both, ",target=class")->names().columns == Names{"LABEL", "x"});
  CHECK(contains(refusal(both, ",target=klass"), "there is no such column"));
  CHECK(contains(refusal(both, ",drop=Class,target=Class"), "left out"));
}

TEST_CASE("columns that nobody named, or that are empty, are left out and said so") {
  const auto numbered = [](int i) { return fmt::format("{},{}", i, two_features(i)); };
  for (const char* name : {"", "Unnamed: 0"}) {
    const auto data = load(table(fmt::format("{},a,b,label", name), 20, numbered));
    CHECK(data->names().columns == Names{"a", "b"});
    CHECK(contains(data->warnings().front(), "numbers the rows"));
  }
  // R names one column fewer than its rows have.
  CHECK(load(table("a,b,label", 20, numbered))->features() == 2);
  const auto trailing = [](int i) { return two_features(i) + ",,"; };
  CHECK(load(table("a,b,label,,", 20, trailing))->features() == 2);
  CHECK(contains(refusal(table("a,,label", 20, two_features)), "column 2 has no name"));
  CHECK(contains(
      warnings(table("id,b,label", 20,
                     [](int i) { return fmt::format("{},{},{}", 5 + 2 * i, i * 3 % 7, i % 2); })),
      "if they number the rows"));
}

TEST_CASE("a file without a header is noticed, and read when that is said") {
  const std::string flowers = table("5.1,3.5,setosa", 20, [](int i) {
    return fmt::format("{},3.5,{}", 4.5 + 0.1 * (i * 3 % 7), i % 2 ? "setosa" : "virginica");
  });
  CHECK(contains(refusal(flowers), "headerless"));
  const auto data = load(flowers, ",headerless");
  CHECK(data->features() == 2);
  CHECK(data->names().classes == Names{"setosa", "virginica"});
  CHECK(data->train().size() + data->test().size() == 21);
  CHECK(contains(refusal("3,1,red\n2,5,blue\n1,1,red\n"), "line 1"));
  CHECK(contains(refusal("1,2,red\n2,5,blue\n1,1,red\n"), "'red' also stands in line 3"));
  CHECK(load("2019,2020,kind\n1,2,0\n3,4,1\n5,1,0\n")->names().columns == Names{"2019", "2020"});
}

TEST_CASE(
    "words among the features are named with what would do, and words as labels are classes") {
  const auto city = [](int i) {
    return fmt::format("{},{},{}", i * 7 % 11, i % 3 ? "Oslo" : "Bern", i % 2);
  };
  const std::string message = refusal(table("age,city,label", 20, city));
  CHECK(contains(message, "line 2: column 'city': 'Bern' is text"));
  CHECK(contains(message, "drop=city"));
  CHECK(load(table("age,city,label", 20, city), ",drop=city")->names().columns == Names{"age"});
  const auto data = load(table("age,x,city", 20, [&](int i) {
    return fmt::format("{},{},{}", i * 7 % 11, i, i % 3 ? "Oslo" : "Bern");
  }));
  CHECK(data->names().classes == Names{"Bern", "Oslo"});
  CHECK(contains(
      refusal(table("age,x,label", 20,
                    [](int i) { return i == 7 ? std::string("12 kg,1,0") : two_features(i); })),
      "line 9: column 'age': '12 kg' is text, where the column has numbers"));
  const auto flags = load(table("on,x,label", 20, [](int i) {
    return fmt::format("{},{},{}", i % 3 ? "TRUE" : "False", i * 3 % 7, i % 2 ? "true" : "false");
  }));
  CHECK(flags->names().classes == Names{"false", "true"});
  CHECK(contains(
      refusal(table("day,x,label", 20,
                    [](int i) { return fmt::format("2024-03-{:02},1,{}", i + 1, i % 2); })),
      "looks like a date"));
}

TEST_CASE("comments above the header are passed over, and NumPy's header is read") {
  CHECK(load("# made by hand\n#\n" + table("a,b,label", 20, two_features))->features() == 2);
  const auto data =
      load(table("# width;kind", 20, [](int i) { return fmt::format("{};{}", i * 3 % 7, i % 2); }));
  CHECK(data->names().columns == Names{"width"});
  CHECK(data->train().size() == 16);
  CHECK(load(table("#,b,label", 20, two_features))->names().columns.front() == "#");
  CHECK(load("# rows\n" + table("3,4,1", 19, two_features), ",headerless")->train().size() == 16);
  CHECK(contains(refusal("\n# two\n" + table("a,,label", 20, two_features)), "line 3: column 2"));
  CHECK(contains(refusal("# nothing\n"), "empty"));
}

TEST_CASE("a file of another task is told which") {
  CHECK(contains(refusal("+1 3:0.5 7:1\n-1 1:1 2:1\n"), "take libsvm:"));
  const test::Scratch scratch;
  const std::string file = scratch.write("rows.svm", "a,b,label\n1,2,0\n").string();
  CHECK(contains(test::refusal([&] { load_task("libsvm:" + file); }), "csv:FILE"));
}

TEST_CASE("signs at numbers, and a header that stands there again, are named") {
  const auto with = [](const char* field) {
    return table("pay,b,label", 20,
                 [field](int i) { return fmt::format("{},{},{}", field, i * 5 % 13, i % 2); });
  };
  CHECK(contains(refusal(with("$12")), "has a currency sign"));
  CHECK(contains(refusal(with("12 €")), "has a currency sign"));
  CHECK(contains(refusal(with("7%")), "percent"));
  CHECK_FALSE(contains(refusal(with("7%")), "each word"));
  const std::string part = table("a,b,label", 20, two_features);
  CHECK(contains(refusal(part + part), "line 22: column 'a': 'a' is the column's name"));
}

TEST_CASE("missing values are refused with their number, or their rows left out") {
  for (const char* word : {"", "NA", "?", "NaN", "null", "#N/A"}) {
    CAPTURE(word);
    const std::string content = table("a,b,label", 21, [&](int i) {
      return i % 5 == 3 ? fmt::format("{},{},{}", i, word, i % 2) : two_features(i);
    });
    CHECK(contains(refusal(content), "line 5: column 'b'"));
    CHECK(contains(refusal(content), "4 of 21 rows"));
    const auto data = load(content, ",skip-missing");
    CHECK(data->train().size() + data->test().size() == 17);
  }
  CHECK(contains(refusal("a,b,label\n1,2,0\n2,3,\n3,4,1\n"), "column 'label'"));
}

TEST_CASE("numbers keep one decimal mark, and thousands separators are named") {
  const auto with = [](const char* number) {
    return table("a;b;label", 20, [number](int i) {
      return i == 4 ? fmt::format("{};1;0", number) : fmt::format("{},5;2;{}", i * 3 % 7, i % 2);
    });
  };
  const auto data = load(with("9,25"));
  CHECK(data->scaling().front().mean > 3);
  CHECK(contains(refusal(with("1.250,75")), "write 1250.75"));
  CHECK(contains(refusal(with("1 250")), "write 1250"));
  CHECK(contains(refusal(with("7.5")), "one decimal mark"));
  CHECK(contains(refusal("a,b\n\"1,250\",0\n3,1\n"), "set apart by commas"));
  CHECK(contains(refusal("a,b\n12%,0\n3,1\n"), "percent"));
}

TEST_CASE("every separator and encoding gives the same data") {
  const std::string commas = table("a,b,label", 30, two_features);
  const auto wanted = load(commas);
  const auto replaced = [](std::string text, char old, const std::string& with) {
    std::string result;
    for (const char c : text) {
      result += c == old ? with : std::string(1, c);
    }
    return result;
  };
  std::string wide = "\xFE\xFF";
  for (const char c : commas) {
    wide += std::string{'\0', c};
  }
  const std::size_t half = commas.size() / 2;
  for (const std::string& content :
       {replaced(commas, ',', "\t"), replaced(commas, ',', "|"), replaced(commas, ',', "  "),
        replaced(replaced(commas, ',', ";"), '.', ","), replaced(commas, '\n', "\r"),
        replaced(commas, '\n', "\r\n\r\n"), "sep=,\n" + commas, wide, test::gzip(commas),
        test::gzip(commas.substr(0, half)) + test::gzip(commas.substr(half))}) {
    CAPTURE(content.substr(0, 30));
    const auto data = load(content);
    REQUIRE(data->train().size() == wanted->train().size());
    std::vector<float> one(2);
    std::vector<float> other(2);
    for (std::size_t row = 0; row < data->train().size(); ++row) {
      data->train().copy_row(row, one);
      wanted->train().copy_row(row, other);
      CHECK(one == other);
      CHECK(data->train().labels()[row] == wanted->train().labels()[row]);
    }
  }
  CHECK(contains(refusal("PK\x03\x04" + std::string(50, '\0')), "zip"));
}

TEST_CASE("features that give the label away, or say nothing, are warned of") {
  const std::string copied = warnings(table("x,code,kind", 40, [](int i) {
    return fmt::format("{},{},{}", i * 7 % 11, i % 2 ? 30 : 10, i % 2 ? "yes" : "no");
  }));
  CHECK(contains(copied, "'code': a value for each class of column 'kind'"));
  CHECK(contains(warnings(table("x,y,z", 40,
                                [](int i) {
                                  return fmt::format("{0},{1}.25,{1}.25", i * 7 % 11, i * i % 17);
                                }),
                          ",regression"),
                 "'y': equal to what is to be predicted"));
  CHECK(contains(warnings(table("x,k,label", 40,
                                [](int i) { return fmt::format("{},4,{}", i * 7 % 11, i % 2); })),
                 "column 'k': the same in all rows"));
  CHECK(warnings(table("a,b,label", 40, two_features)).empty());
}

TEST_CASE("targets of a regression are no classes") {
  const std::string prices =
      table("a,price", 60, [](int i) { return fmt::format("{},{}.5", i * 7 % 11, i % 30); });
  const std::string message = refusal(prices);
  CHECK(contains(message, "30 different labels"));
  CHECK(contains(message, ",regression"));
  // Two fractional labels are two classes.
  CHECK(load(table("a,b", 20, [](int i) {
          return fmt::format("{},{}", i * 7 % 11, i % 2 ? 0.5 : 1.5);
        }))->classes() == 2);
  CHECK(
      contains(warnings(table("a,b", 60,
                              [](int i) { return fmt::format("{},{}", i * 7 % 11, i * i % 59); })),
               "if they are amounts"));
}

TEST_CASE("classes with one example, and those that one of the sets never shows, are warned of") {
  const auto rare = [](int i) {
    return fmt::format("{},{}", i * 7 % 11, i == 17 ? "lone" : i < 3 ? "few" : i % 2 ? "a" : "b");
  };
  const std::string found = warnings(table("x,kind", 60, rare));
  CHECK(contains(found, "1 of 4 classes have one example alone, to train or to test: 'lone'"));
  const auto data = load(table("x,kind", 60, [](int i) {
    return fmt::format("{},{}", i * 7 % 11, i < 2 ? "pair" : i % 2 ? "a" : "b");
  }));
  CHECK(contains(warnings(table("x,kind", 60,
                                [](int i) {
                                  return fmt::format("{},{}", i * 7 % 11,
                                                     i % 3 == 0   ? "Yes"
                                                     : i % 3 == 1 ? "yes"
                                                                  : "no");
                                })),
                 "2 of 3 classes differ in capital letters alone: 'Yes', 'yes'"));
  const bool split = data->warnings().empty();
  CHECK((split || contains(data->warnings().front(), "set alone")));
}

TEST_CASE("a task's parameters may hold commas and quotes") {
  const std::string content = table("\"size, m\",b,label", 20, two_features);
  CHECK(load(content, ",drop=\"size, m\"")->names().columns == Names{"b"});
  CHECK(load(content, ",target=\"size, m\"")->names().columns == Names{"b", "label"});
  CHECK(contains(test::refusal([&] { load(content, ",target="); }), "a name is expected"));
  CHECK(contains(test::refusal([&] { load(content, ",regression=1"); }), "takes no value"));
}

TEST_CASE("what is advised is a task that is read as it was meant") {
  const std::vector<std::string> names = {
      std::string(80, 'n'), "size, m", "5\" disk", "a=\"b",
      "x,drop=\"y\"",       "\"",      "=\"",      "a,b=\"c\",d"};
  for (const std::string& name : names) {
    CAPTURE(name);
    const TableRequest request{.task = "csv:table.csv"};
    const std::string advised = request.with("drop", name);
    CAPTURE(advised);
    std::string field;
    for (const char c : name) {
      field += c == '"' ? "\"\"" : std::string(1, c);
    }
    const std::string content =
        table("\"" + field + "\",b,label", 20, [](int i) { return two_features(i); });
    CHECK(load(content, advised.substr(request.task.size()))->names().columns == Names{"b"});
  }
  const std::string wordy = table(std::string(80, 'c') + ",b,label", 20, [](int i) {
    return fmt::format("word{},{},{}", i % 3, i, i % 2);
  });
  CHECK(contains(refusal(wordy), ",drop=" + std::string(80, 'c')));
}

TEST_CASE("a column is left out once, however it is written") {
  const std::string content = table("y,b,label", 20, two_features);
  CHECK(load(content, ",drop=y")->names().columns == Names{"b"});
  CHECK(contains(refusal(content, ",drop=y,drop=Y"), "drop=Y: column 'y' is left out already"));
  CHECK(contains(refusal(content, ",drop=Y,drop=y"), "drop=y: column 'y' is left out already"));
  CHECK(contains(refusal(content, ",target=b,target=B,regression"), "target=B is given twice"));
}

TEST_CASE("a table takes as long for its cells in columns as in rows") {
  // The processor's time for the thread, as a ratio: comparing each column with each other one
  // makes the wide table take hundreds of times as long as the long one.
  const auto seconds_of = [](int columns, int rows) {
    std::string header;
    std::string row;
    for (int i = 0; i < columns; ++i) {
      header += fmt::format("column-{},", i);
      row += i % 2 == 0 ? "1," : ",";  // every other one is empty, and left out
    }
    const std::string content =
        table(header + "label", rows, [&row](int i) { return row + fmt::to_string(i % 2); });
    const test::Scratch scratch;
    const auto file = scratch.write("table.csv", content).string();
    const auto now = [] {
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    const double begin = now();
    const auto data = load_task("csv:" + file)->dataset;
    const double end = now();
    CHECK(data->features() == static_cast<std::size_t>(columns / 2));
    return end - begin;
  };
  const double in_rows = seconds_of(60, 4000);
  const double in_columns = seconds_of(60'000, 4);
  CHECK_MESSAGE(in_columns < 20 * in_rows, in_columns, " s, and ", in_rows, " s");
  CHECK(contains(refusal("a,b,c,b,c,label\n1,2,3,4,5,0\n"), "columns 2 and 4 are both called 'b'"));
}

TEST_CASE("a check says what is seen of a file, whatever it is") {
  const test::Scratch scratch;
  const auto file = [&](const char* name, const std::string& content) {
    return scratch.write(name, content).string();
  };
  const DataCheck table_check =
      check_data(file("flowers.csv", test::gzip(table("n;width;kind", 20, [](int i) {
                        return fmt::format("{};{},5;{}", i, i * 3 % 7, i % 2 ? "rose" : "lily");
                      }))));
  CHECK(table_check.format == "a table");
  CHECK(table_check.refusal.empty());
  CHECK(table_check.text->separator == "semicolon");
  CHECK(table_check.text->gzip_members == 1);
  CHECK(table_check.rows == 20);
  CHECK(table_check.columns[2].role == "target");
  CHECK(table_check.columns[2].holds == "words");
  CHECK(table_check.classes[0].name == "lily");
  CHECK(table_check.classes[0].train + table_check.classes[0].test == 10);
  CHECK(contains(table_check.warnings.front(), "'n'"));
  const DataCheck sparse = check_data(file("rows.txt", "# rows\n+1 qid:1 3:2\n-1 1:1\n+1 2:1\n"));
  CHECK(sparse.task.starts_with("libsvm:"));
  CHECK(sparse.features == 3);
  const DataCheck broken = check_data(file("broken.csv", "a,b\n1,2\n3\n"));
  CHECK(contains(broken.refusal, "line 3"));
  CHECK(check_data(file("q.json", R"({"start": [1], "nodes": [{"h": [1], "c": [2]}]})"))
            .refusal.empty());
  CHECK(check_data("digits,train=20,test=10").train == 20);
  CHECK_THROWS_AS(check_data("nowhere.csv"), Error);
}

}  // namespace sotto::test::table_test
