#include <sotto/observe/json_lines.h>

#include <utility>

#include <sotto/base/unix_time.h>
#include <sotto/observe/figures.h>

#include "internal/json.h"

namespace sotto {
namespace {

Json link_lines(const NodeStanding& node) {
  Json links = Json::array();
  for (const LinkTraffic& link : node.traffic) {
    Json json = {{"to", link.to}};
    for (const LinkFigure& figure : link_figures()) {
      json[std::string(figure.info.name)] = figure.value(link);
    }
    links.push_back(std::move(json));
  }
  return links;
}

Json node_lines(const std::vector<NodeStanding>& nodes) {
  Json all = Json::array();
  for (const NodeStanding& node : nodes) {
    Json json = {{"node", node.node}};
    for (const NodeFigure& figure : node_figures()) {
      json[std::string(figure.info.name)] = figure.value(node);
    }
    json["links"] = link_lines(node);
    all.push_back(std::move(json));
  }
  return all;
}

/// A line: the event and when it is, then the fields.
std::string line_of(const char* event, const Json& fields) {
  Json line = {{"event", event}, {"time", unix_time()}};
  line.update(fields);
  return json_text(line) + "\n";
}

}  // namespace

JsonLines::JsonLines(const std::string& path, bool keep, std::string config, Tell tell)
    : file_("log_json", path, keep, std::move(tell)), config_(std::move(config)) {}

void JsonLines::began(const RunStart& start) {
  file_.append(line_of("began", {{"sotto", SOTTO_VERSION},
                                 {"nodes", start.nodes},
                                 {"round", start.done},
                                 {"rounds", start.rounds > 0 ? Json(start.rounds) : Json()},
                                 {"rounds_per_epoch", start.rounds_per_epoch},
                                 {"dimension", start.dimension},
                                 {"config", internal::parsed_config(config_)}}));
}

void JsonLines::evaluated(const RunEvaluation& evaluation) {
  Json fields = {{"round", evaluation.point.round}};
  for (const RunFigure& figure : run_figures()) {
    fields[std::string(figure.info.name)] = figure.value(evaluation);
  }
  fields["nodes"] = node_lines(evaluation.nodes);
  file_.append(line_of("evaluation", fields));
}

void JsonLines::warning(const std::string& text) {
  file_.append(line_of("warning", {{"text", text}}));
}

void JsonLines::ended(const Status& status) {
  file_.append(
      line_of("ended", {{"ok", status.ok()}, {"text", status.ok() ? "" : status.message()}}));
}

}  // namespace sotto
