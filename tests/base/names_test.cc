#include <sotto/base/names.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

namespace sotto::test::names_test {

namespace {

const std::vector<std::string> kNames = {"quant", "topk", "randk", "d2", "lowrank"};

std::string refusal(std::string_view spec, const std::vector<std::string>& forms = {}) {
  try {
    refuse_unknown("compressor", spec, kNames, forms);
  } catch (const Error& error) {
    return error.what();
  }
}

struct Entry {
  std::string_view name;
  bool fits;
};

}  // namespace

TEST_CASE("a mistyped word is told from one that is far from all") {
  CHECK(nearest("qant", kNames) == "quant");   // left out
  CHECK(nearest("qaunt", kNames) == "quant");  // swapped
  CHECK(nearest("QUANT", kNames) == "quant");
  CHECK(nearest("low", kNames) == "lowrank");  // begun
  CHECK(nearest("topk", kNames).empty());      // none is meant but itself
  CHECK(nearest("sparse", kNames).empty());
  CHECK(nearest("", kNames).empty());
}

TEST_CASE("an unknown name is refused once, with the guess before what there is") {
  CHECK(refusal("qant:8") ==
        "compressor: 'qant:8' is refused: did you mean quant? There are quant, topk, randk, d2, "
        "lowrank");
  CHECK(refusal("sparse", {"quant:B[,chunk=N]", "topk:KEEP"}) ==
        "compressor: 'sparse' is refused: there are quant:B[,chunk=N]; topk:KEEP");
  CHECK(did_you_mean("tpk", kNames) == "; did you mean topk?");
  CHECK(did_you_mean("sparse", kNames) == ";");
}

TEST_CASE("a mistyped word is told what it may have meant") {
  const std::vector<std::string> names = {"ring", "dcd", "topk", "onebit-adam", "IPM"};
  CHECK(nearest("rng", names) == "ring");
  CHECK(nearest("DCD", names) == "dcd");
  CHECK(nearest("TopK", names) == "topk");
  CHECK(nearest("OneBit", names) == "onebit-adam");
  CHECK(nearest("ipm", names) == "IPM");
  CHECK(nearest("dcd", names).empty());  // nothing is mistyped
  CHECK(nearest("mnist", names).empty());
}

TEST_CASE("a list of words reads as a person writes it") {
  CHECK(word_list({}).empty());
  CHECK(word_list({"a"}) == "a");
  CHECK(word_list({"a", "b"}) == "a or b");
  CHECK(word_list({"a", "b", "c"}, "and") == "a, b and c");
}

TEST_CASE("the names with a fact keep the registry's order") {
  constexpr std::array<Entry, 3> kAll = {{{"z", true}, {"b", false}, {"a", true}}};
  CHECK(names_with(kAll, &Entry::fits) == std::vector<std::string>{"z", "a"});
  CHECK(names_with(kAll, [](const Entry& one) { return !one.fits; }) ==
        std::vector<std::string>{"b"});
}

TEST_CASE("a setting's name has dashes outside of programs") {
  CHECK(dashed("weight_decay") == "weight-decay");
  CHECK(dashed("weight-decay") == "weight-decay");
  CHECK(dashed("lr") == "lr");
}

}  // namespace sotto::test::names_test
