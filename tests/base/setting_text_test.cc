#include <sotto/base/setting_text.h>

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>

namespace sotto::test::setting_text_test {

namespace {

/// A place that writes "<weight-decay>", and values behind an arrow.
class InBrackets final : public Spelling {
 public:
  std::string subject(std::string_view setting) const override {
    return "<" + dashed(setting) + ">";
  }
  std::string mention(std::string_view setting, std::string_view value) const override {
    return subject(setting) + (value.empty() ? "" : "→" + std::string(value));
  }

 private:
  static std::string dashed(std::string_view setting) {
    std::string name(setting);
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
  }
};

std::string what(const Error& error) { return error.what(); }

}  // namespace

TEST_CASE("a message names settings in the words of a place") {
  const SettingText message = "noise needs a bound: give " + mention("clip_norm") + " too, or " +
                              mention("weight_decay", "0.1") + std::string(", or neither");
  CHECK(message.text() ==
        "noise needs a bound: give clip_norm too, or weight_decay = 0.1, or neither");
  CHECK(message.text(InBrackets()) ==
        "noise needs a bound: give <clip-norm> too, or <weight-decay>→0.1, or neither");
  CHECK(SettingText().text().empty());
  CHECK((SettingText("") + "").text().empty());
}

TEST_CASE("what only looks like a setting stays as it is") {
  const SettingText message = std::string("weight_decay, --weight-decay and ") + mention("lazy");
  CHECK(message.text(InBrackets()) == "weight_decay, --weight-decay and <lazy>");
}

TEST_CASE("an error has its field, value and reason as data") {
  const Error refused("weight_decay", "-1", "it must be positive, or " + mention("lazy", "true"));
  CHECK(refused.field() == "weight_decay");
  CHECK(refused.value() == "-1");
  CHECK(refused.reason().text() == "it must be positive, or lazy = true");
  CHECK(what(refused) == "weight_decay: '-1' is refused: it must be positive, or lazy = true");
  CHECK(refused.render(InBrackets()) ==
        "<weight-decay>: '-1' is refused: it must be positive, or <lazy>→true");

  const Error named("lazy", "it is for graphs");
  CHECK(named.field() == "lazy");
  CHECK_FALSE(named.value());
  CHECK(what(named) == "lazy: it is for graphs");
  CHECK(named.render(InBrackets()) == "<lazy>: it is for graphs");

  const Error plain("file.csv: no such file");
  CHECK(plain.field().empty());
  CHECK_FALSE(plain.value());
  CHECK(plain.render(InBrackets()) == "file.csv: no such file");
}

TEST_CASE("an empty value is a value") {
  CHECK(what(Error("rule", "", "it names none")) == "rule: '' is refused: it names none");
}

TEST_CASE("an error is said of another field, and of a field where it has none") {
  const Error inner("lr", "0", "it must be positive");
  CHECK(what(inner.renamed("outer_lr")) == "outer_lr: '0' is refused: it must be positive");
  CHECK(what(inner.about("init")) == "lr: '0' is refused: it must be positive");
  CHECK(what(Error("m.csv: it is empty").about("init")) == "init: m.csv: it is empty");
}

TEST_CASE("errors are printable in whatever words") {
  const Error error("rule", "\x1B[31m", "no \xFF");
  CHECK(what(error) == "rule: '\\x1b[31m' is refused: no \\xff");
  CHECK(error.render(InBrackets()) == "<rule>: '\\x1b[31m' is refused: no \\xff");
}

TEST_CASE("refuse throws an error with its parts") {
  CHECK_THROWS_WITH_AS(refuse("nodes", "0", "at least 1 is needed"),
                       "nodes: '0' is refused: at least 1 is needed", Error);
  try {
    refuse_unknown("algorithm", "chocco", {"choco", "dcd"});
    FAIL("it is accepted");
  } catch (const Error& error) {
    CHECK(error.field() == "algorithm");
    CHECK(error.value() == "chocco");
  }
}

}  // namespace sotto::test::setting_text_test
