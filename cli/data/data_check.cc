// `sotto data check`: what a loader sees in a file.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/console/output.h>
#include <sotto/study/json/figures.h>
#include <sotto/study/train/scaling_file.h>
#include <sotto/study/units.h>
#include <sotto/trainers/data/data_check.h>

#include "commands.h"

namespace sotto::cli {
namespace {

constexpr const char* kDataCheckExamples =
    "Examples:\n"
    "  sotto data check patients.csv\n"
    "  sotto data check csv:houses.csv,target=price,regression --json -\n"
    "  sotto data check digits\n"
    "FILE is a file, a folder, or a task as --task takes it. Exits with 2 when it cannot be "
    "trained on.";

constexpr std::size_t kRowsShown = 40;

struct DataCheckOptions {
  console::CommonOptions common;
  std::string file;
  std::string scaling;
};

Json check_json(const DataCheck& check) {
  Json columns = Json::array();
  for (const ColumnFacts& column : check.columns) {
    columns.push_back({{"name", printable(column.name)},
                       {"role", printable(column.role)},
                       {"holds", column.holds},
                       {"missing", column.missing},
                       {"least", study::or_null(column.least)},
                       {"largest", study::or_null(column.largest)}});
  }
  Json classes = Json::array();
  for (const ClassFacts& one : check.classes) {
    classes.push_back({{"name", printable(one.name)}, {"train", one.train}, {"test", one.test}});
  }
  Json targets = Json::array();
  for (std::size_t k = 0; k < check.targets.size(); ++k) {
    const FeatureScaling& scaling = check.target_scaling[k];
    targets.push_back({{"name", printable(check.targets[k])},
                       {"mean", scaling.mean},
                       {"deviation", 1 / scaling.factor}});
  }
  Json text;
  if (check.text) {
    text = {{"encoding", check.text->encoding},
            {"gzip_members", check.text->gzip_members},
            {"separator", check.text->separator.empty() ? Json() : Json(check.text->separator)},
            {"header", check.text->separator.empty() ? Json() : Json(!check.text->headerless)}};
  }
  Json image;
  if (check.image) {
    image = {{"height", check.image->height}, {"width", check.image->width}};
  }
  Json warnings = Json::array();
  for (const std::string& warning : check.warnings) {
    warnings.push_back(printable(warning));
  }
  return {{"sotto", SOTTO_VERSION},
          {"task", printable(check.task)},
          {"format", check.format},
          {"text", text},
          {"rows", study::or_null(check.rows)},
          {"columns", columns},
          {"features", study::or_null(check.features)},
          {"image", image},
          {"train", check.train},
          {"test", check.test},
          {"classes", classes},
          {"targets", targets},
          {"warnings", warnings},
          {"refused", check.refusal.empty() ? Json() : Json(printable(check.refusal))}};
}

std::string written_as(const TextFacts& text) {
  std::vector<std::string> parts = {text.encoding};
  if (text.gzip_members > 0) {
    parts.push_back(text.gzip_members == 1 ? "gzip"
                                           : fmt::format("gzip of {} members", text.gzip_members));
  }
  if (!text.separator.empty()) {
    parts.push_back(fmt::format("separator {}", text.separator));
    parts.emplace_back(text.headerless ? "no header" : "a header");
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void print_columns(const DataCheck& check, const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.6g}", *value) : std::string("–");
  };
  for (const ColumnFacts& column : check.columns) {
    if (rows.size() == kRowsShown) {
      break;
    }
    rows.push_back({one_line(column.name), column.role, column.holds,
                    fmt::to_string(column.missing), number(column.least), number(column.largest)});
  }
  output.line("");
  output.table({"column", "role", "holds", "missing", "least", "largest"}, rows);
  if (check.columns.size() > rows.size()) {
    output.line(fmt::format("and {} more", check.columns.size() - rows.size()));
  }
}

void print_answers(const DataCheck& check, const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  for (const ClassFacts& one : check.classes) {
    if (rows.size() == kRowsShown) {
      break;
    }
    rows.push_back({one_line(one.name), fmt::to_string(one.train), fmt::to_string(one.test)});
  }
  if (!rows.empty()) {
    output.line("");
    output.table({"class", "to train", "to test"}, rows);
    if (check.classes.size() > rows.size()) {
      output.line(fmt::format("and {} more", check.classes.size() - rows.size()));
    }
  }
  for (std::size_t k = 0; k < check.targets.size(); ++k) {
    const FeatureScaling& scaling = check.target_scaling[k];
    output.line(fmt::format("target {}: mean {:.6g}, deviation {:.6g}", one_line(check.targets[k]),
                            scaling.mean, 1 / scaling.factor));
  }
}

void print_check(const DataCheck& check, const console::Output& output) {
  output.line(fmt::format("{}: {}{}", printable(check.task), check.format,
                          check.text ? fmt::format(" ({})", written_as(*check.text)) : ""));
  if (check.rows) {
    output.line(fmt::format("{}, {}", study::counted(*check.rows, "row"),
                            study::counted(check.columns.size(), "column")));
  }
  if (!check.columns.empty()) {
    print_columns(check, output);
  }
  if (check.features) {
    output.line("");
    output.line(fmt::format(
        "{}{}, {} to train, {} to test", study::counted(*check.features, "feature"),
        check.image ? fmt::format(" ({} × {} pixels)", check.image->height, check.image->width)
                    : "",
        study::counted(check.train, "example"), check.test));
  }
  print_answers(check, output);
  if (!check.warnings.empty()) {
    output.line("");
  }
  for (const std::string& warning : check.warnings) {
    output.line(fmt::format("warning: {}", printable(warning)));
  }
  if (check.refusal.empty()) {
    output.line("");
    output.line(fmt::format("Train on it with --task {}", printable(check.task)));
  }
}

int run_data_check(const DataCheckOptions& options) {
  const console::Output output(options.common);
  std::optional<SharedScaling> scaling;
  if (!options.scaling.empty()) {
    scaling = study::read_scaling("scaling", options.scaling);
  }
  const DataCheck check = check_data(options.file, scaling ? &*scaling : nullptr);
  print_check(check, output);
  output.json(check_json(check));
  if (!check.refusal.empty()) {
    throw Error(check.refusal);
  }
  return console::kDone;
}

}  // namespace

console::Command add_data_check_command(CLI::App& data) {
  auto options = std::make_shared<DataCheckOptions>();
  CLI::App* command = data.add_subcommand(
      "check", "Says what is read of a file: format, columns, classes, and what is odd");
  command->add_option("FILE", options->file, "A file, a folder, or a task as --task takes it")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--scaling", options->scaling,
                   "Whether these means and deviations, of `sotto data scaling`, fit the table")
      ->type_name("FILE.toml");
  return completed(*command, options, kDataCheckExamples, run_data_check);
}

}  // namespace sotto::cli
