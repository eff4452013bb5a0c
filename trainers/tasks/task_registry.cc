#include <sotto/trainers/tasks/task_registry.h>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/trainers/data/digits.h>
#include <sotto/trainers/data/loaders.h>
#include <sotto/trainers/data/partition.h>
#include <sotto/trainers/data/sampler.h>
#include <sotto/trainers/tasks/batch_shares.h>
#include <sotto/trainers/tasks/clipped_task.h>
#include <sotto/trainers/tasks/model.h>
#include <sotto/trainers/tasks/supervised_task.h>

#include "../data/loaders/table_request.h"
#include "../data/loaders/task_spec.h"

namespace sotto {
namespace {

/// Values that a model keeps of a batch, with its features, at most.
constexpr std::size_t kMostBatchValues = std::size_t{1} << 30;

/// A kind of task and how its data come about.
struct Entry {
  TaskInfo info;
  TaskData (*load)(std::string_view spec, const SharedScaling* scaling);
};

TaskData with_dataset(std::shared_ptr<const Dataset> dataset) {
  TaskData data;
  data.dataset = std::move(dataset);
  return data;
}

TaskData load_digits_task(std::string_view spec, const SharedScaling* /*none*/) {
  constexpr std::array<KnownParameter, 3> kKnown = {{{"train"}, {"test"}, {"seed"}}};
  const TaskSpec parsed = parse_task_spec(spec, false, kKnown);
  const DigitsOptions defaults;
  return with_dataset(make_digits({.train = parsed.value("train", defaults.train),
                                   .test = parsed.value("test", defaults.test),
                                   .seed = parsed.value("seed", defaults.seed)}));
}

/// Tasks with a loader that takes a path and nothing else.
template <auto load>
TaskData load_path_task(std::string_view spec, const SharedScaling* /*none*/) {
  return with_dataset(load(parse_task_spec(spec, true).path));
}

TaskData load_mnist_task(std::string_view spec, const SharedScaling* /*none*/) {
  constexpr std::array<KnownParameter, 1> kKnown = {{{"set", ParameterKind::text}}};
  const TaskSpec parsed = parse_task_spec(spec, true, kKnown);
  const auto sets = parsed.all("set");
  return with_dataset(
      load_mnist(parsed.path, {.task = parsed.text, .set = sets.empty() ? "" : sets.back()}));
}

TaskData load_csv_task(std::string_view spec, const SharedScaling* scaling) {
  TableTask task = parse_table_task(spec);
  task.request.scaling = scaling;
  return with_dataset(load_csv(task.file, task.request));
}

TaskData load_libsvm_task(std::string_view spec, const SharedScaling* /*none*/) {
  constexpr std::array<KnownParameter, 3> kKnown = {
      {{"features"}, {"regression", ParameterKind::word}, {"zero-based", ParameterKind::word}}};
  const TaskSpec parsed = parse_task_spec(spec, true, kKnown);
  return with_dataset(load_libsvm(parsed.path, {.task = parsed.text,
                                                .features = parsed.value("features", 0),
                                                .regression = parsed.has("regression"),
                                                .zero_based = parsed.has("zero-based")}));
}

TaskData load_text_task(std::string_view spec, const SharedScaling* /*none*/) {
  constexpr std::array<KnownParameter, 1> kKnown = {{{"context"}}};
  const TaskSpec parsed = parse_task_spec(spec, true, kKnown);
  return with_dataset(load_text(parsed.path, parsed.value("context", 8)));
}

TaskData load_quadratic_task(std::string_view spec, const SharedScaling* /*none*/) {
  TaskData data;
  data.quadratic = load_quadratic(parse_task_spec(spec, true).path);
  return data;
}

TaskData load_graph_task(std::string_view spec, const SharedScaling* /*none*/) {
  TaskData data;
  data.graph = load_graph(spec);
  return data;
}

constexpr std::array<Entry, 8> kEntries = {{
    {{"digits", "digits[,train=N][,test=N][,seed=S]",
      "generated 28 × 28 images of drawn digits, 10 classes; needs no file", "mlp:64"},
     load_digits_task},
    {{"mnist", "mnist:DIR[,set=NAME]",
      "MNIST and its relatives, EMNIST among them, from IDX files, gzip or not", "mlp:64"},
     load_mnist_task},
    {{"csv", "csv:FILE[,target=COLUMN][,regression][,drop=COLUMN][,headerless][,skip-missing]",
      "a table with a header; the last column, or `label`, is the class, or the number to predict",
      "softmax"},
     load_csv_task},
    {{"occupancy", "occupancy:DIR", "room occupancy from five sensors (UCI 357), 2 classes",
      "softmax"},
     load_path_task<load_occupancy>},
    {{"libsvm", "libsvm:FILE[,features=N][,regression][,zero-based]",
      "sparse examples in LIBSVM's format, with classes or numbers to predict", "softmax"},
     load_libsvm_task},
    {{"text", "text:FILE[,context=N]",
      "prediction of a text's next character from the N = 8 before", "mlp:128"},
     load_text_task},
    {{"quadratic", "quadratic:FILE",
      "½ Σ h (x − c)² with h and c of each node from a JSON file; exact gradients", ""},
     load_quadratic_task},
    {{"graph",
      "graph:FILE[,hidden=N][,embedding=N][,halo=C][,gradient-halo=C][,cache=ROUNDS]"
      "[,share=PERCENT][,cut=walk|random][,apart][,test=PERCENT][,seed=S]",
      "the signs of people's ratings of each other, by a graph network cut over the nodes; its "
      "accuracy is the AUC",
      ""},
     load_graph_task},
}};

constexpr auto kInfos = [] {
  std::array<TaskInfo, kEntries.size()> infos;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    infos[i] = kEntries[i].info;
  }
  return infos;
}();

/// Throws Error unless a batch occupies less than 4 GiB.
std::size_t largest_batch(const Dataset& data, std::size_t activations) {
  return std::min(kMostBatch, kMostBatchValues / (data.features() + activations));
}

void require_batch(std::size_t batch, const Dataset& data, std::size_t activations) {
  const std::size_t features = data.features();
  const std::size_t largest = largest_batch(data, activations);
  if (batch == 0 || batch > largest) {
    refuse(
        "batch", fmt::to_string(batch),
        largest == 0
            ? fmt::format("an example alone takes {} values; choose a smaller model{}",
                          features + activations, data.sequence() ? " or context" : "")
            : fmt::format("expected 1 … {} examples of {} features, for which the model keeps {} "
                          "values each",
                          largest, features, activations));
  }
}

double sampling_rate_of(std::size_t examples, std::size_t batch) {
  return std::min(1.0, static_cast<double>(batch) / static_cast<double>(examples));
}

/// One example's presence can be hidden only where there are examples that stand alone.
void require_lone_examples(const TaskData& data) {
  if (!data.dataset) {
    refuse("privacy_unit", "example", fmt::format("{} has no examples; take update", data.spec));
  }
  if (data.dataset->sequence()) {
    refuse("privacy_unit", "example",
           "neighbouring examples of a text share its characters, so that hiding one hides "
           "nothing; take update");
  }
}

/// The examples of each node.
std::vector<std::vector<std::uint32_t>> deal_examples(const TaskData& data, int nodes,
                                                      const Partition& partition,
                                                      std::uint64_t seed) {
  const Dataset& dataset = *data.dataset;
  const std::size_t examples = dataset.train().size();
  if (nodes < 1 || static_cast<std::size_t>(nodes) > examples) {
    refuse("nodes", fmt::to_string(nodes),
           fmt::format(
               "there are {} training examples, and every node needs one: take fewer "
               "nodes or more data{}",
               examples,
               task_name(data.spec) == "digits" ? fmt::format(", as digits,train={}", nodes) : ""));
  }
  if (!dataset.regression()) {
    return partition_examples(dataset.train().labels(), dataset.classes(), nodes, partition, seed);
  }
  if (partition.by_class()) {
    refuse(
        "partition", partition.spec(),
        fmt::format("it deals classes out, and {} has none; take iid, sizes or blocks", data.spec));
  }
  const std::vector<std::int32_t> alike(examples, 0);
  return partition_examples(alike, 1, nodes, partition, seed);
}

/// Neither a quadratic nor a graph in parts has a model of choice, or examples to split.
void require_plain(const TaskData& data, const TaskOptions& options) {
  if (!options.model.empty()) {
    refuse("model", options.model, fmt::format("{} is a model itself; leave it out", data.spec));
  }
  if (options.partition != "iid") {
    refuse("partition", options.partition,
           fmt::format("{} has no examples to split; leave it out", data.spec));
  }
  if (const auto nodes = data.nodes(); nodes && options.nodes != *nodes) {
    refuse("nodes", fmt::to_string(options.nodes),
           fmt::format("{} describes {} node(s)", data.spec, *nodes));
  }
  if (!options.batches.empty()) {
    throw Error("batch_share", fmt::format("{} has no examples to share out", data.spec));
  }
}

}  // namespace

bool TaskData::regression() const { return dataset && dataset->regression(); }

std::optional<int> TaskData::nodes() const {
  return quadratic ? std::optional(static_cast<int>(quadratic->nodes.size())) : std::nullopt;
}

std::span<const TaskInfo> tasks() { return kInfos; }

std::shared_ptr<const TaskData> load_task(std::string_view spec, const SharedScaling* scaling) {
  for (const Entry& entry : kEntries) {
    if (entry.info.name == task_name(spec)) {
      if (scaling != nullptr && entry.load != load_csv_task) {
        refuse("scaling", scaling->source,
               fmt::format("it scales the columns of a table, csv:FILE; the task is {}", spec));
      }
      TaskData data = entry.load(spec, scaling);
      data.spec = spec;
      data.scaling = scaling == nullptr ? "" : scaling_digest(*scaling);
      data.default_model = data.regression() ? "linear" : entry.info.default_model;
      return std::make_shared<const TaskData>(std::move(data));
    }
  }
  refuse_unregistered("task", spec, kInfos);
}

void require_own_gradients(const TaskData& data, std::string_view who) {
  if (data.graph) {
    refuse(
        "task", data.spec,
        fmt::format("the nodes of a graph in parts need each other's rows in every round, and {} "
                    "has gradients of its own; train it by sotto train, with a fixed number of "
                    "nodes",
                    who));
  }
}

ModelInput input_of(const Dataset& data) {
  return {.features = data.features(),
          .classes = static_cast<std::size_t>(data.classes()),
          .image = data.image(),
          .sequence = data.sequence(),
          .targets = data.train().outputs()};
}

TaskFactory::TaskFactory(std::shared_ptr<const TaskData> data, TaskOptions options)
    : data_(std::move(data)), options_(std::move(options)) {
  if (options_.clipping) {
    require_lone_examples(*data_);
  }
  if (!data_->dataset) {
    require_plain(*data_, options_);
    graph_split_ = data_->graph ? split_graph(*data_->graph, options_.nodes) : nullptr;
    return;
  }
  if (options_.model.empty()) {
    options_.model = data_->default_model;
  }
  const Dataset& dataset = *data_->dataset;
  const auto model = make_model(options_.model, input_of(dataset));  // refuse early
  const auto& batches = options_.batches;
  require_batch(options_.batch, dataset, model->activations());
  if (const auto largest = std::ranges::max_element(batches); largest != batches.end()) {
    const std::size_t most = largest_batch(dataset, model->activations());
    if (*largest > most) {
      throw Error("batch_share",
                  fmt::format("node {} would have {} examples of a batch, and {} are the most; "
                              "choose a smaller batch, or shares that differ less",
                              largest - batches.begin(), *largest, most));
    }
  }
  const Partition partition = parse_partition(options_.partition);
  if (options_.deal) {
    const int dealt = options_.nodes - static_cast<int>(options_.byzantine.size());
    shards_ = deal_examples(*data_, dealt, partition, options_.seed);
  }
}

std::vector<std::size_t> TaskFactory::examples_per_node() const {
  std::vector<std::size_t> sizes;
  for (const auto& shard : shards_) {
    sizes.push_back(shard.size());
  }
  return sizes;
}

double TaskFactory::sampling_rate() const {
  if (!options_.deal) {
    const std::size_t even = data_->dataset->train().size() / static_cast<unsigned>(options_.nodes);
    return sampling_rate_of(std::max(even, std::size_t{1}), options_.batch);
  }
  double largest = 0;
  for (const auto& shard : shards_) {
    largest = std::max(largest, sampling_rate_of(shard.size(), options_.batch));
  }
  return largest;
}

std::vector<std::uint32_t> TaskFactory::shard_of(Rank rank) const {
  const auto& liars = options_.byzantine;
  const auto before = std::lower_bound(liars.begin(), liars.end(), rank) - liars.begin();
  const bool lies = std::binary_search(liars.begin(), liars.end(), rank);
  const auto share = static_cast<std::size_t>(lies ? before : rank - before);
  return options_.deal ? shards_[share % shards_.size()] : std::vector<std::uint32_t>{0};
}

std::unique_ptr<SupervisedTask> TaskFactory::make_supervised(Rank rank) const {
  check(rank >= 0 && rank < options_.nodes && data_->dataset != nullptr,
        "the rank of a node of the job, whose data are examples");
  const auto& liars = options_.byzantine;
  const std::size_t honest = static_cast<std::size_t>(options_.nodes) - liars.size();
  auto task = std::make_unique<SupervisedTask>(
      data_->dataset, make_model(options_.model, input_of(*data_->dataset)),
      Sampler(shard_of(rank), options_.batch_of(rank), options_.seed, rank),
      options_.batch * honest);
  if (options_.flip_labels && std::binary_search(liars.begin(), liars.end(), rank)) {
    task->flip_labels();
  }
  return task;
}

std::unique_ptr<Task> TaskFactory::make(Rank rank) const {
  check(rank >= 0 && rank < options_.nodes, "the rank of a node of the job");
  if (data_->quadratic) {
    return std::make_unique<QuadraticTask>(data_->quadratic, rank);
  }
  if (data_->graph) {
    return std::make_unique<GraphTask>(data_->graph, graph_split_);
  }
  auto task = make_supervised(rank);
  if (!options_.clipping) {
    return task;
  }
  const auto& [clip_norm, test_seed] = *options_.clipping;
  const auto shard = shard_of(rank);
  PoissonSampler sampler(shard, sampling_rate_of(shard.size(), options_.batch),
                         test_seed ? SecretKey::for_tests(*test_seed, rank) : SecretKey::fresh());
  return std::make_unique<ClippedTask>(std::move(task), std::move(sampler), clip_norm,
                                       static_cast<double>(options_.batch));
}

}  // namespace sotto
