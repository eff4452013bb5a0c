#include <sotto/compress/registry.h>

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include <sotto/base/error.h>

namespace sotto::test::registry_test {

namespace {

std::string error_of(std::string_view spec) {
  try {
    make_compressor(spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool says(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

TEST_CASE("every family's example builds, and its specification builds it again") {
  std::set<std::uint16_t> ids;
  for (const CompressorInfo& info : compressors()) {
    CAPTURE(info.name);
    const auto compressor = make_compressor(info.example);
    CHECK(compressor->wire_id() == info.wire_id);
    CHECK(ids.insert(info.wire_id).second);
    CHECK((info.coded_wire_id == 0 || ids.insert(info.coded_wire_id).second));
    CHECK(make_compressor(compressor->spec())->spec() == compressor->spec());
    CHECK(compressor->clone()->spec() == compressor->spec());
    if (info.name != "per_tensor") {  // which has others inside
      CHECK(std::string_view(info.example).starts_with(info.name));
      CHECK(std::string_view(info.synopsis).starts_with(info.name));
    }
  }
}

TEST_CASE("a specification is printed with all its parameters") {
  CHECK(make_compressor("quant:8")->spec() == "quant:8,chunk=2048,rounding=stochastic");
  CHECK(make_compressor("quant:3,rounding=nearest,chunk=0")->spec() ==
        "quant:3,chunk=0,rounding=nearest");
  CHECK(make_compressor("sign")->spec() == "sign,chunk=4096,scale=mean");
  CHECK(make_compressor("topk:0.1")->spec() == "topk:0.1");
  CHECK(make_compressor("topk:0.1,values=2")->spec() == "topk:0.1,values=2,chunk=4096");
  CHECK(make_compressor("topk:0.1,chunk=64")->spec() == "topk:0.1,values=32,chunk=64");
  CHECK(make_compressor("topk:0.1,values=32,chunk=0")->spec() == "topk:0.1");
  CHECK(make_compressor("randk:0.1,values=4")->spec() == "randk:0.1,values=4");
  CHECK(make_compressor("randk:0.1,values=32")->spec() == "randk:0.1,scale=unbiased");
  CHECK(make_compressor("randk:0.1/topk:0.2,values=4")->spec() ==
        "randk:0.1/topk:0.2,values=4,chunk=4096");
  CHECK(make_compressor("grid:4:0.1")->spec() == "grid:4:0.1");
  CHECK(make_compressor("randk:0.05")->spec() == "randk:0.05,scale=unbiased");
  CHECK(make_compressor("topk:1e-3")->spec() == "topk:0.001");
  CHECK(make_compressor("outlier:4")->spec() == "outlier:4,chunk=1024,k=3");
}

TEST_CASE("what is needed decides the form only where the specification does not") {
  const auto form = [](std::string_view spec, ContractKind need) {
    return make_compressor(spec, need)->spec();
  };
  CHECK(says(form("quant:4", ContractKind::any), "stochastic"));
  CHECK(says(form("quant:4", ContractKind::unbiased), "stochastic"));
  CHECK(says(form("quant:4", ContractKind::contraction), "nearest"));
  CHECK(says(form("quant:4,rounding=stochastic", ContractKind::contraction), "stochastic"));
  CHECK(says(form("quant:4,rounding=nearest", ContractKind::unbiased), "nearest"));
  CHECK(says(form("randk:0.1", ContractKind::any), "unbiased"));
  CHECK(says(form("randk:0.1", ContractKind::contraction), "none"));
  CHECK(says(form("randk:0.1,scale=unbiased", ContractKind::contraction), "unbiased"));
}

TEST_CASE("a refusal names the parameter, the value and what would do") {
  const std::string bits = error_of("quant:9");
  CHECK(says(bits, "quant:9: B: '9' is refused"));
  CHECK(says(bits, "1 to 8"));
  const std::string unknown = error_of("gzip");
  CHECK(says(unknown, "'gzip'"));
  for (const CompressorInfo& info : compressors()) {
    CHECK(says(unknown, info.synopsis));
  }
  CHECK(says(error_of("sign,chunk=-1"), "chunk: '-1'"));
  CHECK(says(error_of("sign,scale=max"), "mean, l2"));
  CHECK(says(error_of("topk:0"),
             "compressor: topk:0: KEEP: '0' is refused: it is the share of elements to keep"));
  CHECK(
      says(error_of("topk:0.1,values=9"), "topk:0.1,values=9: values: '9' is refused: one of 1, "));
  CHECK(says(error_of("quant:8/topk:0.1"), "after '/': 'topk:0.1' is refused: quant takes no"));
  CHECK(says(error_of("randk:0.1/sign"), "topk:KEEP,values=B[,chunk=N] would do"));
  CHECK(says(error_of("randk:0.1,values=4,scale=unbiased"), "scale: 'unbiased'"));
  CHECK(says(error_of("grid:8:-1"), "STEP: '-1'"));
  CHECK(says(error_of("grid:8"), "STEP: ''"));
  CHECK(says(error_of("topk"), "KEEP: ''"));
  CHECK(says(error_of("sign,size=4"), "size: '4'"));
}

TEST_CASE("nothing half understood is built") {
  for (const auto* spec : {"",
                           "quant",
                           "quant:",
                           "quant:0",
                           "quant:9",
                           "quant:4x",
                           "quant: 4",
                           "quant:4.0",
                           "quant:+4",
                           "quant:-4",
                           "quant:4:4",
                           "quant:4,",
                           "quant:4,chunk",
                           "quant:4,chunk=",
                           "quant:4,chunk=-1",
                           "quant:4,=3",
                           "quant:4,b=3",
                           "quant:4,chunk=1e3",
                           "quant:4,chunk=4294967296",
                           "quant:4,chunk=8,chunk=8",
                           "quant:4,rounding=up",
                           "quant:4,rounding=",
                           "Quant:4",
                           " quant:4",
                           "none:1",
                           "none,chunk=4",
                           "none,",
                           "sign:1",
                           "sign,chunk=18446744073709551616",
                           "sign,chunk=0x10",
                           "topk:",
                           "topk:0",
                           "topk:-0.1",
                           "topk:1.01",
                           "topk:nan",
                           "topk:inf",
                           "topk:1e400",
                           "topk:1%",
                           "grid:8",
                           "grid:0.1",
                           "grid:8:",
                           "grid:8:0",
                           "grid:8:-1",
                           "grid:8:nan",
                           "grid:8:inf",
                           "grid:8:1e-40",
                           "grid:8:1e38",
                           "grid:9:0.1",
                           "grid:8:0.1:2",
                           "grid:8:0.1,rounding=nearest",
                           "fp16:1",
                           "bf16,chunk=1",
                           "randk",
                           "randk:0",
                           "randk:2",
                           "randk:0.1,scale=mean",
                           "topk:0.1:2"}) {
    CAPTURE(spec);
    CHECK_THROWS_AS(make_compressor(spec), Error);
  }
}

TEST_CASE("sparse messages with few bits refuse what they cannot build") {
  for (const auto* spec :
       {"topk:0.1,values=", "topk:0.1,values=0", "topk:0.1,values=9", "topk:0.1,values=16",
        "topk:0.1,chunk=-1", "topk:0.1,values=2,chunk=4294967296", "topk:2,values=2",
        "topk:0.1,values=2/", "quant:8/topk:0.1,values=2", "randk:0.1/", "randk:0.1/topk",
        "randk:0.1/topk:0.2", "randk:0.1/topk:2,values=4", "randk:0.1/quant:4",
        "randk:0.1,values=2/topk:0.2,values=2", "randk:0.1/topk:0.2,values=2/topk:0.2,values=2",
        "randk:0.1,values=4,scale=unbiased", "randk:2,values=4"}) {
    CAPTURE(spec);
    CHECK_THROWS_AS(make_compressor(spec), Error);
  }
}

TEST_CASE("outlier and lowrank refuse what they cannot build") {
  for (const auto* spec :
       {"lowrank", "lowrank:0", "lowrank:1025", "lowrank:2,start=cold", "lowrank:2,chunk=4",
        "lowrank:2,steps=0", "lowrank:2,steps=65", "lowrank:2,steps=1.5", "outlier", "outlier:1",
        "outlier:9", "outlier:4,k=0", "outlier:4,k=-3", "outlier:4,k=nan", "outlier:4,k=inf",
        "outlier:4,k=", "outlier:4,chunk=-1"}) {
    CAPTURE(spec);
    CHECK_THROWS_AS(make_compressor(spec), Error);
  }
}

}  // namespace sotto::test::registry_test
