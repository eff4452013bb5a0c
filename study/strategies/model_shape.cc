#include <sotto/study/strategies/model_shape.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/optim/step_rule.h>
#include <sotto/trainers/data/dataset.h>
#include <sotto/trainers/tasks/model.h>

namespace sotto::study {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// A tensor's name, cut behind its first number.
struct CutName {
  std::string block;  ///< "h.3"; "wte" of a name without a number
  std::string kind;   ///< "h.#"
  std::string rest;   ///< ".attn.c_attn.weight"
  bool numbered = false;
};

CutName cut(const std::string& name) {
  const auto first = std::ranges::find_if(name, is_digit);
  if (first == name.end()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    return {name.substr(0, dot), name.substr(0, dot), name.substr(dot)};
  }
  const auto behind = std::find_if_not(first, name.end(), is_digit);
  return {.block = std::string(name.begin(), behind),
          .kind = std::string(name.begin(), first) + '#',
          .rest = std::string(behind, name.end()),
          .numbered = true};
}

/// The number of the expert that a tensor of a block belongs to, a word of the name by itself, "3"
/// of ".mlp.3.c_fc.weight"; none: "".
std::string expert_of(const std::string& rest) {
  for (std::size_t begin = rest.find('.'); begin < rest.size();) {
    const std::size_t end = std::min(rest.find('.', begin + 1), rest.size());
    const std::string word = rest.substr(begin + 1, end - begin - 1);
    if (!word.empty() && std::ranges::all_of(word, is_digit)) {
      return word;
    }
    begin = end;
  }
  return "";
}

/// The tensors of a block so far.
struct OpenBlock {
  std::string name;
  std::string alike;  ///< equal for blocks of one class
  BlockClass made;
  std::set<std::string> experts;
  bool matrices = true;  ///< each tensor is a matrix or a vector
};

void add(const ParameterBlock& tensor, const CutName& name, OpenBlock& block) {
  block.alike += fmt::format("{} {}\n", name.rest, fmt::join(tensor.shape, " "));
  block.made.parameters += tensor.size;
  block.made.attention = block.made.attention || name.rest.find("attn") != std::string::npos;
  block.matrices = block.matrices && name.numbered && tensor.shape.size() <= 2;
  const std::string expert = expert_of(name.rest);
  if (name.numbered && !expert.empty()) {
    block.experts.insert(expert);
    block.made.expert_parameters += tensor.size;
    block.made.expert_matrices += tensor.shape.size() == 2 ? tensor.size : 0;
  } else if (tensor.shape.size() == 2) {
    block.made.products.push_back({.inputs = tensor.shape[1], .outputs = tensor.shape[0]});
  }
}

/// Floats a parameter that a rule keeps, as its checkpoints show.
std::size_t state_of(const StepRuleOptions& options) {
  const auto saved = [&](std::size_t elements) {
    const auto rule = make_step_rule(options);
    rule->resize(one_tensor(elements));
    ByteBuffer out;
    rule->save(out);
    return out.bytes().size();
  };
  constexpr std::size_t kElements = 1024;
  return (saved(2 * kElements) - saved(kElements)) / (sizeof(float) * kElements);
}

/// The specification of a transformer whose layers are tied; "": the model is none, or has them.
std::string tied_spec(const std::string& model, const ModelShape& shape) {
  const auto blocks = std::ranges::find(shape.classes, true, &BlockClass::attention);
  const bool free = model.starts_with("transformer") && blocks != shape.classes.end() &&
                    blocks->blocks > 1 && blocks->experts == 0 &&
                    model.find("share=") == std::string::npos;
  if (!free) {
    return "";
  }
  const bool sized = model.find(':') != std::string::npos;
  return fmt::format("{}share={}", sized ? model + "," : "transformer:2,64,4,", blocks->blocks);
}

}  // namespace

ModelShape classes_of(const ParameterLayout& layout) {
  std::vector<OpenBlock> blocks;
  for (const ParameterBlock& tensor : layout) {
    const CutName name = cut(tensor.name);
    if (blocks.empty() || blocks.back().name != name.block) {
      blocks.push_back({.name = name.block, .alike = name.kind + '\n', .made = {}, .experts = {}});
      blocks.back().made.name = name.kind;
    }
    add(tensor, name, blocks.back());
  }
  ModelShape shape;
  std::map<std::string, std::size_t> seen;
  for (OpenBlock& block : blocks) {
    block.made.experts = block.experts.size();
    if (!block.matrices) {
      block.made.products.clear();
    }
    shape.parameters += block.made.parameters;
    const auto [at, fresh] = seen.emplace(block.alike, shape.classes.size());
    if (fresh) {
      shape.classes.push_back(std::move(block.made));
    } else {
      ++shape.classes[at->second].blocks;
    }
    shape.order.push_back(at->second);
  }
  return shape;
}

ModelShape shape_of(const TrainPlan& plan) {
  ModelShape shape = classes_of(plan.tasks->make(0)->layout());
  const TaskOptions& options = plan.tasks->options();
  shape.examples = options.batch;
  shape.state = state_of(plan.run.optimizer.step_rule);
  const auto& dataset = plan.tasks->data().dataset;
  if (dataset == nullptr) {
    return shape;
  }
  const ModelInput input = input_of(*dataset);
  const auto model = make_model(options.model, input);
  shape.positions = model->positions();
  shape.activations = shape.examples * (model->activations() + input.features);
  shape.tied = tied_spec(options.model, shape);
  if (!shape.tied.empty()) {
    shape.tied_parameters = dimension_of(make_model(shape.tied, input)->layout());
  }
  return shape;
}

}  // namespace sotto::study
