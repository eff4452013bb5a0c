// `sotto data scaling`: means and deviations that sites share without showing their tables.
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/base/text.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/optim/privacy/accountant.h>
#include <sotto/optim/privacy/privacy_options.h>
#include <sotto/study/train/scaling_file.h>
#include <sotto/study/units.h>
#include <sotto/trainers/data/shared_scaling.h>
#include <sotto/trainers/data/table_sums.h>
#include <sotto/trainers/settings/privacy_settings.h>

#include "commands.h"

namespace sotto::cli {
namespace {

constexpr const char* kDataScalingExamples =
    "Examples:\n"
    "  sotto data scaling patients.csv --bounds age=0:120,bmi=10:60 --privacy-epsilon 1 --output "
    "a.toml\n"
    "  sotto data scaling csv:houses.csv,target=price,regression --bounds area=0:500,price=0:2e6 "
    "--without-noise --output a.toml\n"
    "  sotto data scaling --combine a.toml b.toml c.toml --output scaling.toml\n"
    "Each site makes a file of sums and sends it to the others; all combine them, and name the "
    "result\n"
    "in their site.toml, `[data] scaling`, or with --scaling.";

struct DataScalingOptions {
  console::CommonOptions common;
  std::string file;
  std::string bounds;
  std::optional<double> epsilon;
  std::optional<double> delta;
  std::optional<double> noise;
  std::optional<std::uint64_t> privacy_seed;
  bool without_noise = false;
  std::vector<std::string> combine;
  std::string output;
};

void check_output(const DataScalingOptions& o) {
  if (o.output.empty()) {
    throw Error("output", "name the file to write");
  }
  check_writable("output", o.output);
}

/// Options that are for the other use of this command.
void refuse_both(const DataScalingOptions& o) {
  if (o.combine.empty() == o.file.empty()) {
    throw Error(o.file.empty() ? "give a table to add up, or --combine and the sums of the sites"
                               : "--combine takes files of sums, and no table");
  }
  const bool of_table =
      !o.bounds.empty() || o.epsilon || o.delta || o.noise || o.privacy_seed || o.without_noise;
  if (!o.combine.empty() && of_table) {
    throw Error(
        "--combine adds files of sums up as they are: bounds and noise are for the table "
        "of one site");
  }
}

SumsPrivacy privacy_of(const DataScalingOptions& o) {
  const bool hides = o.epsilon || o.noise;
  if (hides == o.without_noise) {
    throw Error(hides ? "--without-noise contradicts --privacy-epsilon and --noise-multiplier"
                      : "what may the sums cost? Give --privacy-epsilon, e.g. 1, or "
                        "--noise-multiplier; --without-noise shows them as they are");
  }
  SumsPrivacy privacy;
  privacy.delta = o.delta.value_or(privacy.delta);
  privacy.test_seed = o.privacy_seed;
  if (o.without_noise) {
    return privacy;
  }
  PrivacyOptions asked{.unit = PrivacyUnit::example, .clip_norm = 1, .epsilon = o.epsilon};
  asked.delta = privacy.delta;
  asked.noise_multiplier = o.noise.value_or(1);
  check_privacy_ranges(asked);
  if (!o.noise) {
    asked.noise_multiplier =
        std::max(kLeastNoiseMultiplier, noise_multiplier_for(*o.epsilon, privacy.delta, 1, 1));
  }
  privacy.noise_multiplier = asked.noise_multiplier;
  privacy.epsilon = epsilon_spent(asked, 1);
  if (o.epsilon && privacy.epsilon > *o.epsilon) {
    refuse("noise_multiplier", fmt::to_string(*o.noise),
           fmt::format("it costs epsilon {:.4g}, more than {}", privacy.epsilon, *o.epsilon));
  }
  return privacy;
}

void warn_of(const DataScalingOptions& o, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    if (!o.common.quiet) {
      console::warn(warning);
    }
  }
}

void print_sums(const SummedTable& summed, const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t k = 0; k < summed.sums.columns.size(); ++k) {
    const ColumnSums& column = summed.sums.columns[k];
    const double half = (column.largest - column.least) / 2;
    rows.push_back({one_line(column.name), column.target ? "target" : "feature",
                    fmt::format("{:g}", column.least), fmt::format("{:g}", column.largest),
                    fmt::to_string(summed.clipped[k]),
                    fmt::format("{:.3g}", half * summed.noise / static_cast<double>(summed.rows))});
  }
  output.table({"column", "role", "least", "largest", "clipped", "noise of the mean"}, rows);
}

int make_sums(const DataScalingOptions& o, const console::Output& output) {
  const SumsPrivacy privacy = privacy_of(o);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(o.output, ignored)) {
    refuse("output", o.output,
           "it is there already: another file of sums of the same rows tells more of them, and "
           "costs again; use this one, or name another");
  }
  const SummedTable summed = sum_table(o.file, parse_bounds(o.bounds), privacy);
  write_result_file("output", o.output, study::table_sums_text(summed.sums));
  print_sums(summed, output);
  warn_of(o, summed.warnings);
  if (o.privacy_seed) {
    warn_of(o, {fmt::format("--privacy-seed: {}", kSeedHidesNothing)});
  }
  output.line(
      privacy.noise_multiplier > 0
          ? fmt::format("{}: sums of {}, which cost epsilon {:.4g} at delta {} (noise "
                        "multiplier {:.4g})",
                        printable(o.output), study::counted(summed.rows, "row"), privacy.epsilon,
                        privacy.delta, privacy.noise_multiplier)
          : fmt::format("{}: sums of {} WITHOUT NOISE: who has several such files of nearly "
                        "the same rows can tell the rows",
                        printable(o.output), study::counted(summed.rows, "row")));
  Json columns = Json::array();
  for (std::size_t k = 0; k < summed.sums.columns.size(); ++k) {
    const ColumnSums& column = summed.sums.columns[k];
    columns.push_back({{"name", column.name},
                       {"role", column.target ? "target" : "feature"},
                       {"least", column.least},
                       {"largest", column.largest},
                       {"clipped", summed.clipped[k]}});
  }
  const bool hides = privacy.noise_multiplier > 0;
  output.json({{"sotto", SOTTO_VERSION},
               {"file", printable(o.output)},
               {"rows", summed.rows},
               {"columns", columns},
               {"privacy", hides ? Json({{"noise_multiplier", privacy.noise_multiplier},
                                         {"epsilon", privacy.epsilon},
                                         {"delta", privacy.delta},
                                         {"noise", summed.noise}})
                                 : Json()}});
  return console::kDone;
}

int combine(const DataScalingOptions& o, const console::Output& output) {
  std::vector<TableSums> tables;
  for (const std::string& path : o.combine) {
    tables.push_back(study::read_table_sums("combine", path));
  }
  const CombinedScaling combined = combine_sums(tables);
  write_result_file("output", o.output, study::scaling_text(combined.scaling));
  std::vector<std::vector<std::string>> rows;
  Json columns = Json::array();
  for (const bool target : {false, true}) {
    const char* const role = target ? "target" : "feature";
    for (const ScaledColumn& one : target ? combined.scaling.targets : combined.scaling.columns) {
      rows.push_back({one_line(one.name), role, fmt::format("{:.6g}", one.mean),
                      fmt::format("{:.6g}", one.deviation)});
      columns.push_back(
          {{"name", one.name}, {"role", role}, {"mean", one.mean}, {"deviation", one.deviation}});
    }
  }
  std::vector<std::vector<std::string>> sites;
  for (const TableSums& table : tables) {
    const double noise = table.privacy.noise_multiplier;
    sites.push_back({one_line(table.source), fmt::format("{:.6g}", table.rows),
                     noise > 0 ? fmt::format("{:.4g}", noise) : "none"});
  }
  output.table({"sums", "rows", "noise multiplier"}, sites);
  output.line("");
  output.table({"column", "role", "mean", "deviation"}, rows);
  warn_of(o, combined.warnings);
  const std::string digest = scaling_digest(combined.scaling);
  output.line(fmt::format("{}: {} of {}, {:.6g} rows; digest {}", printable(o.output),
                          study::counted(rows.size(), "column"),
                          study::counted(tables.size(), "site"), combined.rows,
                          digest.substr(0, kDigestShown)));
  Json warnings = Json::array();
  for (const std::string& warning : combined.warnings) {
    warnings.push_back(printable(warning));
  }
  output.json({{"sotto", SOTTO_VERSION},
               {"file", printable(o.output)},
               {"sites", tables.size()},
               {"rows", combined.rows},
               {"digest", digest},
               {"columns", columns},
               {"warnings", warnings}});
  return console::kDone;
}

int run_data_scaling(const DataScalingOptions& options) {
  refuse_both(options);
  check_output(options);
  const console::Output output(options.common);
  return options.combine.empty() ? make_sums(options, output) : combine(options, output);
}

}  // namespace

console::Command add_data_scaling_command(CLI::App& data) {
  auto options = std::make_shared<DataScalingOptions>();
  CLI::App* command = data.add_subcommand(
      "scaling", "Makes means and deviations of columns that sites share, from sums with noise");
  command->add_option("FILE", options->file, "A table, or csv:FILE with its parameters")
      ->type_name("FILE");
  console::OptionGroup sums(*command, "The sums of one site");
  sums.option("--bounds", options->bounds, "NAME=LEAST:LARGEST,…",
              "Bounds of every column, known without the data; values outside are clipped. Columns "
              "of true and false have 0:1");
  sums.option("--privacy-epsilon", options->epsilon, "E",
              "What the sums may cost of a row's privacy; noise is chosen for it");
  sums.option("--privacy-delta", options->delta, "D", "delta of that; by default 1e-5");
  sums.option("--noise-multiplier", options->noise, "SIGMA",
              "The noise's deviation over the sensitivity, instead of --privacy-epsilon");
  sums.flag("--without-noise", options->without_noise, "Show the sums as they are");
  sums.count("--privacy-seed", options->privacy_seed, "S",
             "Take the noise from this seed, which hides nothing: for tests");
  command->add_option("--combine", options->combine, "Files of sums, one of each site")
      ->type_name("FILE.toml...")
      ->group("The scaling of all sites");
  console::OptionGroup result(*command, "What is written");
  result.option("--output", options->output, "FILE.toml", "The sums, or the scaling");
  return completed(*command, options, kDataScalingExamples, run_data_scaling);
}

}  // namespace sotto::cli
