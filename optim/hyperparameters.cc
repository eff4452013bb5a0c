#include <sotto/optim/hyperparameters.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/number.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>

namespace sotto {
namespace {

constexpr std::string_view kAutomatic = "auto";

bool stands_alone(std::span<const Hyperparameter> table) {
  return table.size() == 1 && table.front().kind == HyperparameterKind::text;
}

/// A value that would do, in most cases.
std::string_view example(const Hyperparameter& one) {
  if (one.kind == HyperparameterKind::compressor) {
    return "quant:8";
  }
  return one.choices.empty() ? "1" : one.choices.front();
}

std::string bounds(const Hyperparameter& one) {
  if (one.kind == HyperparameterKind::choice) {
    return word_list({one.choices.begin(), one.choices.end()});
  }
  const bool whole = one.kind == HyperparameterKind::count;
  std::string text = whole ? fmt::format("a whole number from {:.0f}", one.above + 1)
                           : fmt::format("a number above {}", one.above);
  if (one.most < std::numeric_limits<double>::infinity()) {
    text += whole ? fmt::format(" to {:.0f}", one.most)
                  : fmt::format(", as float32 holds it, and at most {}", one.most);
  }
  return text;
}

bool within(const Hyperparameter& one, double value) {
  return value > one.above && value <= one.most &&
         static_cast<double>(static_cast<float>(value)) > one.above;
}

/// The one text of a whole number; empty for what is none, or out of bounds.
std::string count_text(const Hyperparameter& one, std::string_view value) {
  const auto count = parse_number<std::uint64_t>(value, 0, kMostCounted);
  return count && within(one, static_cast<double>(*count)) ? fmt::to_string(*count) : "";
}

/// The canonical text of a real number, as count_text.
std::string real_text(const Hyperparameter& one, std::string_view value) {
  const auto number = parse_number<double>(value);
  return number && within(one, *number) ? fmt::to_string(*number) : "";
}

/// The canonical text of a word, as count_text.
std::string choice_text(const Hyperparameter& one, std::string_view value) {
  return std::ranges::find(one.choices, value) == one.choices.end() ? "" : std::string(value);
}

/// The one text of a value; empty for what is none, or out of bounds. Throws Error for what is no
/// compressor.
std::string value_text(const Hyperparameter& one, std::string_view value) {
  switch (one.kind) {
    case HyperparameterKind::count:
      return count_text(one, value);
    case HyperparameterKind::real:
      return real_text(one, value);
    case HyperparameterKind::choice:
      return choice_text(one, value);
    case HyperparameterKind::compressor:
      return make_compressor(value, one.contract)->spec();
    case HyperparameterKind::text:
      break;
  }
  return std::string(value);
}

}  // namespace

Hyperparameters::Hyperparameters(std::string_view algorithm, std::span<const Hyperparameter> table)
    : algorithm_(algorithm), table_(table), values_(table.size()) {}

const Hyperparameter* Hyperparameters::find(std::string_view key) const {
  const auto found = std::ranges::find(table_, key, &Hyperparameter::key);
  return found == table_.end() ? nullptr : &*found;
}

std::size_t Hyperparameters::index_of(std::string_view key) const {
  const Hyperparameter* one = find(key);
  if (one == nullptr) {
    refuse_key(key);
  }
  return static_cast<std::size_t>(one - table_.data());
}

void Hyperparameters::refuse_key(std::string_view key) const {
  std::vector<std::string> keys;
  for (const Hyperparameter& one : table_) {
    keys.emplace_back(one.key);
  }
  const auto others =
      names_with(algorithms(), [&](const AlgorithmInfo& other) { return other.has(key); });
  const std::string elsewhere =
      others.empty() ? "" : fmt::format("; '{}' is of {}", key, word_list(others));
  refuse("algorithm", fmt::format("{}:{}", algorithm_, key),
         (keys.empty() || stands_alone(table_)
              ? fmt::format("{} has no hyperparameters with names; leave it out", algorithm_)
              : fmt::format("{} has no hyperparameter '{}'{} it has {}", algorithm_, excerpt(key),
                            did_you_mean(key, keys), fmt::join(keys, " and "))) +
             elsewhere);
}

void Hyperparameters::refuse_value(const Hyperparameter& one, std::string_view value,
                                   std::string_view setting, const SettingText& reason) const {
  if (!setting.empty()) {
    refuse(setting, value, reason);
  }
  refuse("algorithm", fmt::format("{}:{}={}", algorithm_, one.key, value), reason);
}

void Hyperparameters::read(std::string_view text) {
  if (text.empty()) {
    refuse("algorithm", fmt::format("{}:", algorithm_), "nothing stands behind the colon");
  }
  if (stands_alone(table_)) {
    set(table_.front().key, text);
    return;
  }
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const Hyperparameter* const one = find(key);
    if (equals == std::string_view::npos && one != nullptr) {
      refuse("algorithm", fmt::format("{}:{}", algorithm_, part),
             fmt::format("give its value, as in {}:{}={}", algorithm_, key, example(*one)));
    }
    const bool last = one != nullptr && one->kind == HyperparameterKind::compressor;
    set(key, equals == std::string_view::npos ? "" : (last ? text : part).substr(equals + 1));
    if (last || part.size() == text.size()) {
      return;
    }
    text.remove_prefix(part.size() + 1);
  }
}

std::string Hyperparameters::canonical(const Hyperparameter& one, std::string_view value,
                                       std::string_view setting) const {
  const bool automatic = one.fallback == kAutomatic || one.derive != nullptr;
  if (value == one.fallback || (automatic && value == kAutomatic)) {
    return {};
  }
  std::string text;
  try {
    text = value_text(one, value);
  } catch (const Error& error) {
    refuse_value(one, excerpt(value), setting, error.reason());
  }
  if (text.empty()) {
    refuse_value(one, excerpt(value), setting,
                 fmt::format("it must be {}{}{}{}", bounds(one), automatic ? ", or auto" : "",
                             one.why.empty() ? "" : ": ", one.why));
  }
  return text == one.fallback ? std::string() : text;
}

void Hyperparameters::set(std::string_view key, std::string_view value, std::string_view setting) {
  const std::size_t index = index_of(key);
  Value& held = values_[index];
  if (held.given) {
    refuse_value(table_[index], value, setting,
                 fmt::format("it is given twice: {} is {} already", key, text(key)));
  }
  held = {true, canonical(table_[index], value, setting), std::string(setting)};
}

void Hyperparameters::replace(std::string_view key, std::string_view value) {
  const std::size_t index = index_of(key);
  values_[index] = {true, canonical(table_[index], value, {}), {}};
}

void Hyperparameters::derive(const Compressor& compressor, std::size_t dimension) {
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const Hyperparameter& one = table_[i];
    if (one.derive == nullptr || !values_[i].text.empty()) {
      continue;
    }
    const double value = one.derive(compressor, dimension);
    if (!(value > 0)) {
      refuse(one.setting.empty() ? one.key : one.setting, "none given",
             fmt::format("{} is no contraction on Gaussian vectors, so that no default can be "
                         "derived; give a small one, e.g. {}:{}=0.01",
                         compressor.spec(), algorithm_, one.key));
    }
    values_[i].text = fmt::to_string(value);
  }
}

void Hyperparameters::require_complete() const {
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const Hyperparameter& one = table_[i];
    if (one.fallback.empty() && one.derive == nullptr && values_[i].text.empty()) {
      refuse(one.setting.empty() ? one.key : one.setting, "none given",
             fmt::format("{} needs {}, {}, as in {}:{}=100; {}", algorithm_, one.key, one.help,
                         algorithm_, one.key, one.why));
    }
    if (!one.needs.empty() && !values_[i].text.empty() && !has(one.needs)) {
      refuse_value(
          one, values_[i].text, values_[i].setting,
          fmt::format("{} does nothing without {}; give both, as in {}:{}=100,{}={}", one.key,
                      one.needs, algorithm_, one.needs, one.key, values_[i].text));
    }
  }
}

const std::string* Hyperparameters::value_of(std::string_view key) const {
  const Hyperparameter* one = find(key);
  const Value* value = one == nullptr ? nullptr : &values_[index_of(key)];
  return value == nullptr || value->text.empty() ? nullptr : &value->text;
}

std::string_view Hyperparameters::text(std::string_view key) const {
  const std::string* value = value_of(key);
  const Hyperparameter* one = find(key);
  return value != nullptr ? std::string_view(*value) : one != nullptr ? one->fallback : "";
}

std::optional<std::uint64_t> Hyperparameters::optional_count(std::string_view key) const {
  return parse_number<std::uint64_t>(text(key));
}

std::uint64_t Hyperparameters::count(std::string_view key) const {
  const auto value = optional_count(key);
  check(value.has_value(), "a hyperparameter that is read has a value");
  return *value;
}

std::optional<double> Hyperparameters::optional_real(std::string_view key) const {
  return parse_number<double>(text(key));
}

float Hyperparameters::real(std::string_view key) const {
  const auto value = optional_real(key);
  check(value.has_value(), "a hyperparameter that is read has a value");
  return static_cast<float>(*value);
}

std::string Hyperparameters::spec() const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    if (!values_[i].text.empty()) {
      parts.push_back(stands_alone(table_) ? values_[i].text
                                           : fmt::format("{}={}", table_[i].key, values_[i].text));
    }
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace sotto
