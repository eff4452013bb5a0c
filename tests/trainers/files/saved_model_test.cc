// Models out of checkpoints, and back as the start of another run.
#include <sotto/trainers/files/saved_model.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/trainers/files/parameter_file.h>
#include <sotto/trainers/files/start_file.h>
#include <sotto/trainers/model_sum.h>
#include <sotto/trainers/run.h>
#include <sotto/trainers/tasks/quadratic.h>

#include "support/scratch.h"
#include "trainers/nodes.h"

namespace sotto::test::saved_model_test {

namespace fs = std::filesystem;

namespace {

constexpr int kSavers = 3;

RunOptions saving(const std::string& folder, int nodes = kSavers) {
  RunOptions options;
  options.optimizer.nodes = nodes;
  options.optimizer.step_rule.learning_rate = 0.05;
  options.rounds = 8;
  options.eval_every = 4;
  options.checkpoint = folder;
  options.checkpoint_every = 4;
  return options;
}

TaskOfNode apart(int nodes = kSavers) {
  auto made = std::make_shared<QuadraticProblem>();
  made->start.assign(12, 0.5F);
  for (int i = 0; i < nodes; ++i) {
    made->nodes.push_back({std::vector<double>(12, 0.4), std::vector<double>(12, i)});
  }
  return [shared = std::shared_ptr<const QuadraticProblem>(made)](Rank rank) {
    return std::make_unique<QuadraticTask>(shared, rank);
  };
}

void write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

ParameterLayout two_tensors() {
  ParameterLayout layout;
  append_block(layout, "w", {2, 3});
  append_block(layout, "b", {2});
  return layout;
}

/// What a file of tensors with this header and so many bytes behind it is refused for.
std::string refusal_of(const std::string& header, std::size_t bytes) {
  ByteBuffer out;
  out.write(static_cast<std::uint64_t>(header.size()));
  out.write_span<char>(header);
  out.append(std::vector<std::byte>(bytes));
  const auto read = decode_model_file(out.bytes(), two_tensors());
  CHECK(read.status().fault() == Fault::malformed);
  return read.status().message();
}

}  // namespace

TEST_CASE("the mean and each node's model come out of checkpoints as the run had them") {
  const Scratch scratch;
  const std::string folder = (scratch.path() / "saved").string();
  auto options = saving(folder);
  options.dump_parameters = (scratch.path() / "end.csv").string();
  const auto result = run_threads(options, apart(), {});
  REQUIRE_MESSAGE(result.ok(), result.status().message());

  ModelSum sum;
  std::ifstream rows(options.dump_parameters);
  for (Rank rank = 0; rank < kSavers; ++rank) {
    const auto own = read_node_model(folder, rank, std::nullopt);
    REQUIRE_MESSAGE(own.ok(), own.status().message());
    CHECK(own->round == 8);
    std::string row;
    std::getline(rows, row);
    CHECK(parameter_row(own->parameters) == row + "\n");
    sum.add(own->parameters);
  }
  const auto mean = read_mean_model(folder, std::nullopt);
  REQUIRE_MESSAGE(mean.ok(), mean.status().message());
  CHECK(mean->round == 8);
  CHECK(mean->nodes == kSavers);
  CHECK(mean->parameters == sum.mean());
  CHECK(read_mean_model(folder, Round{4})->round == 4);
  CHECK(read_node_model(folder, 1, Round{4})->round == 4);
}

TEST_CASE("between two weighted exchanges the saved mean counts nodes by their weights") {
  const Scratch scratch;
  const std::string folder = (scratch.path() / "saved").string();
  auto options = saving(folder);
  options.optimizer.algorithm = "allreduce";
  options.optimizer.communication_interval = 3;  // rounds 4 and 8 lie between exchanges
  for (Rank rank = 0; rank < kSavers; ++rank) {
    options.weights.push_back(1 + 2.5 * rank);
  }
  REQUIRE(run_threads(options, apart(), {}).ok());
  ModelSum weighted;
  ModelSum alike;
  for (Rank rank = 0; rank < kSavers; ++rank) {
    const auto own = read_node_model(folder, rank, std::nullopt);
    REQUIRE_MESSAGE(own.ok(), own.status().message());
    weighted.add(own->parameters, options.weights[static_cast<std::size_t>(rank)]);
    alike.add(own->parameters);
  }
  const auto mean = read_mean_model(folder, std::nullopt);
  REQUIRE_MESSAGE(mean.ok(), mean.status().message());
  CHECK(mean->parameters == weighted.mean());
  CHECK(mean->parameters != alike.mean());
}

TEST_CASE("the newest whole round counts, and what is not whole is named") {
  const Scratch scratch;
  const std::string folder = (scratch.path() / "saved").string();
  REQUIRE(run_threads(saving(folder), apart(), {}).ok());
  write(folder + "/node-1.round-8.checkpoint", "damaged");
  CHECK(read_mean_model(folder, std::nullopt)->round == 4);
  CHECK(read_node_model(folder, 1, std::nullopt)->round == 4);
  CHECK(read_node_model(folder, 0, std::nullopt)->round == 8);
  const auto of_eight = read_mean_model(folder, Round{8});
  CHECK(contains(of_eight.status().message(), "node-1.round-8.checkpoint"));
  fs::remove(folder + "/node-2.round-4.checkpoint");
  const auto none = read_mean_model(folder, std::nullopt);
  CHECK(none.status().fault() == Fault::io);
  CHECK_MESSAGE(contains(none.status().message(), "that of node 2 is missing"),
                none.status().message());
  CHECK_FALSE(read_node_model(folder, 7, std::nullopt).ok());
  CHECK_FALSE(read_mean_model(folder, Round{5}).ok());
  CHECK_FALSE(read_mean_model((scratch.path() / "nowhere").string(), std::nullopt).ok());
  CHECK_FALSE(fs::exists(scratch.path() / "nowhere"));
}

TEST_CASE("a model whose length lies is refused before anything is made for it") {
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{3}, ~std::uint64_t{0}, (std::uint64_t{1} << 62U) + 1}) {
    CAPTURE(length);
    Checkpoint checkpoint;
    ByteBuffer out;
    out.write(length);
    out.write_span(std::span<const float>(std::vector<float>(2, 1)));
    checkpoint.optimizer = std::move(out).take();
    CHECK(model_in(checkpoint).status().fault() == Fault::malformed);
  }
}

TEST_CASE("another number of nodes, or other settings, are refused with the way out") {
  const Scratch scratch;
  const std::string folder = (scratch.path() / "saved").string();
  REQUIRE(run_threads(saving(folder), apart(), {}).ok());
  const auto refusal = [&](const RunOptions& changed) -> std::string {
    RunOptions options = changed;
    options.resume = true;
    try {
      (void)run_threads(options, apart(options.optimizer.nodes), {});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  auto fewer = saving(folder, 2);
  auto slower = saving(folder);
  slower.optimizer.step_rule.learning_rate = 0.01;
  auto coarser = saving(folder);
  coarser.optimizer.compressor = "quant:4";
  for (const RunOptions& changed : {fewer, slower, coarser}) {
    const std::string why = refusal(changed);
    CHECK_MESSAGE(contains(why, "sotto checkpoint export " + folder + " --mean"), why);
    CHECK(contains(why, "with init = " + folder));
  }
}

TEST_CASE("fewer and more nodes start from the mean of a folder of checkpoints") {
  const Scratch scratch;
  const std::string folder = (scratch.path() / "saved").string();
  REQUIRE(run_threads(saving(folder), apart(), {}).ok());
  const auto mean = read_mean_model(folder, std::nullopt);
  REQUIRE(mean.ok());
  const ParameterLayout layout = apart()(0)->layout();
  const Start start = read_start(folder, layout);
  CHECK(start.parameters == mean->parameters);
  CHECK(contains(start.left_behind, "the mean of 3 models after round 8"));
  for (const int nodes : {1, 2, 5}) {
    CAPTURE(nodes);
    auto options = saving((scratch.path() / fmt::to_string(nodes)).string(), nodes);
    options.start = start.parameters;
    const auto result = run_threads(options, apart(nodes), {});
    CHECK_MESSAGE(result.ok(), result.status().message());
    CHECK(result->rounds == 8);
  }
  CHECK_THROWS_WITH_AS(read_start(folder, two_tensors()), doctest::Contains("another model"),
                       Error);
  CHECK_THROWS_WITH_AS(read_start(scratch.path().string(), layout), doctest::Contains("checkpoint"),
                       Error);
}

TEST_CASE("a file of tensors is the start that it was made of, and so is one of text") {
  const Scratch scratch;
  const ParameterLayout layout = two_tensors();
  const std::vector<float> model = {1, 2, 3, 4, 5, 6, 7, 0.1F};
  for (const std::string name : {"m.safetensors", "m.csv"}) {
    CAPTURE(name);
    const std::string path = (scratch.path() / name).string();
    write(path, start_file(path, layout, model, {{"round", "3"}}));
    CHECK(read_start(path, layout).parameters == model);
  }
  // Tensors in another order, and one vector without names.
  const std::string path = (scratch.path() / "other.safetensors").string();
  ParameterLayout swapped;
  append_block(swapped, "b", {2});
  append_block(swapped, "w", {2, 3});
  write(path, start_file(path, swapped, std::vector<float>{7, 0.1F, 1, 2, 3, 4, 5, 6}, {}));
  CHECK(read_start(path, layout).parameters == model);
  write(path, start_file(path, one_tensor(8), model, {}));
  CHECK(read_start(path, layout).parameters == model);
}

TEST_CASE("a file of tensors that does not fit the model is refused by the tensor") {
  const std::string b = R"("b":{"dtype":"F32","shape":[2],"data_offsets":[24,32]})";
  const auto header = [&](const std::string& w) { return "{" + b + "," + w + "}"; };
  CHECK(contains(refusal_of("{" + b + "}", 32), "the model has a tensor 'w' of shape (2, 3)"));
  CHECK(
      contains(refusal_of(header(R"("w":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]})"), 32),
               "tensor 'w': the model's has the shape (2, 3), the file's (3, 2)"));
  CHECK(
      contains(refusal_of(header(R"("w":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]})"), 32),
               "tensor 'w': 32-bit floats (F32) are needed"));
  CHECK(
      contains(refusal_of(header(R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,20]})"), 32),
               "tensor 'w': its shape (2, 3) does not fit its 20 bytes"));
  CHECK(
      contains(refusal_of(header(R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})"), 31),
               "tensor 'b'"));
  CHECK(contains(refusal_of(header(R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                                   R"("c":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})"),
                            32),
                 "the file has a tensor 'c'"));
  CHECK(contains(refusal_of(header(R"("w":{"dtype":"F32","shape":[4294967296,4294967296,2],)"
                                   R"("data_offsets":[0,24]})"),
                            32),
                 "too large"));
  for (const std::string text : {"", "[]", "{", R"({"w":1})", R"({"w":{"dtype":"F32"}})",
                                 R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})"}) {
    CAPTURE(text);
    (void)refusal_of(text, 32);
  }
  CHECK_FALSE(decode_model_file({}, two_tensors()).ok());
}

TEST_CASE("tensors come with their names, in the order of their values, and none over another") {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto model = read_model_tensors(encode_model_file(two_tensors(), values, {{"a", "note"}}));
  REQUIRE(model.ok());
  CHECK(layout_text(model->layout) == layout_text(two_tensors()));  // w stands before b
  CHECK(model->parameters == values);
  const auto refused = [](const std::string& tensors) {
    const std::string header = "{" + tensors + "}";
    ByteBuffer out;
    out.write(static_cast<std::uint64_t>(header.size()));
    out.write_span<char>(header);
    out.append(std::vector<std::byte>(32));
    const auto read = read_model_tensors(out.bytes());
    CHECK(read.status().fault() == Fault::malformed);
    return read.status().message();
  };
  CHECK(contains(refused(R"("w":{"dtype":"F32","shape":[6],"data_offsets":[0,24]},)"
                         R"("b":{"dtype":"F32","shape":[3],"data_offsets":[20,32]})"),
                 "over another"));
  CHECK(contains(refused(R"("w":{"dtype":"F32","shape":[6],"data_offsets":[0,24]},)"
                         R"("b":{"dtype":"F32","shape":[6],"data_offsets":[0,24]})"),
                 "over another"));
  CHECK(contains(refused(R"("w":{"dtype":"F32","shape":[0],"data_offsets":[8,8]})"), "is empty"));
  CHECK(contains(refused(R"("w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]})"), "F32"));
  CHECK_FALSE(read_model_tensors({}).ok());
}

TEST_CASE("a header of tensors that is nested without end, or says a thing twice, is refused") {
  const auto nested = [](std::size_t depth, char open, char close) {
    return std::string(depth, open) + std::string(depth, close);
  };
  constexpr std::size_t kDeep = 2'000'000;
  const std::string b = R"("b":{"dtype":"F32","shape":[2],"data_offsets":[24,32]})";
  const std::string w = R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})";
  const std::string deep = nested(kDeep, '[', ']');
  for (const std::string& text :
       {"{" + b + R"(,"w":{"dtype":)" + deep + R"(,"shape":[2,3],"data_offsets":[0,24]}})",
        "{" + b + R"(,"w":{"dtype":"F32","shape":)" + deep + R"(,"data_offsets":[0,24]}})",
        R"({"__metadata__":)" + deep + "," + b + "," + w + "}", deep}) {
    CHECK(contains(refusal_of(text, 32), "nested deeper"));
  }
  CHECK(contains(refusal_of("{" + b + "," + w + "," + b + "}", 32), "\"b\" stands in line 1"));
  CHECK(contains(refusal_of(R"({"w":{"dtype":"F32","dtype":"F32"}})", 32), "\"dtype\" stands"));
  CHECK(contains(refusal_of("{" + b + R"(,"\u0062":{}})", 32), "\"b\" stands"));
  CHECK(contains(refusal_of(R"({"w":{"dtype":[1],"shape":[1],"data_offsets":[0,4]}})", 32),
                 "tensor 'w': its dtype is no text"));
}

TEST_CASE("a checkpoint beyond all bounds is refused before anything is made for it") {
  const Scratch scratch;
  const std::string folder = scratch.path().string();
  const std::string path = folder + "/node-0.round-3.checkpoint";
  write(path, "");
  std::error_code code;
  fs::resize_file(path, (std::uint64_t{1} << 37U) + 1, code);  // a hole, which takes no room
  if (code) {
    MESSAGE("SKIPPED: no file of 128 GiB can be made here: ", code.message());
    return;
  }
  CHECK(contains(read_mean_model(folder, std::nullopt).status().message(), "which is the limit"));
  CHECK(
      contains(read_node_model(folder, 0, std::nullopt).status().message(), "which is the limit"));
  CHECK(contains(CheckpointFolder(folder, 0).read(3).status().message(), "which is the limit"));
}

TEST_CASE("a mean says how many models it is of, where some are left out") {
  const Scratch scratch;
  const std::string folder = (scratch.path() / "saved").string();
  const auto result = run_threads(saving(folder, 4), apart(4), {});
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  for (Rank rank = 0; rank < 4; ++rank) {
    CheckpointFolder own(folder, rank);
    auto checkpoint = own.read(8);
    REQUIRE(checkpoint.ok());
    REQUIRE(setting_in(checkpoint->agreement, "byzantine") == "");
    checkpoint->agreement.insert(checkpoint->agreement.find("byzantine=") + 10, "1,3");
    REQUIRE(own.write(*checkpoint, 4).ok());
  }
  const auto mean = read_mean_model(folder, std::nullopt);
  REQUIRE_MESSAGE(mean.ok(), mean.status().message());
  CHECK(mean->nodes == 4);
  const auto start = read_start(folder, apart(4)(0)->layout());
  CHECK_MESSAGE(contains(start.left_behind, "the mean of 2 of 4 models after round 8"),
                start.left_behind);
}

}  // namespace sotto::test::saved_model_test
