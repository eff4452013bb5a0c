#include "json_lines.h"

#include <utility>

#include <sotto/base/unix_time.h>

#include "figures.h"

namespace sotto::cli {
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
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    Json json = {{"node", rank}};
    for (const NodeFigure& figure : node_figures()) {
      json[std::string(figure.info.name)] = figure.value(nodes[rank]);
    }
    json["links"] = link_lines(nodes[rank]);
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace

JsonLines::JsonLines(const std::string& path, bool keep, Json config, Tell tell)
    : file_("--log-json", path, keep, std::move(tell)), config_(std::move(config)) {}

void JsonLines::write(const char* event, const Json& fields) {
  Json line = {{"event", event}, {"time", unix_time()}};
  line.update(fields);
  // JSON has neither NaN nor infinities: the writer makes them null.
  file_.append(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void JsonLines::began(const RunStart& start) {
  write("began", {{"sotto", SOTTO_VERSION},
                  {"nodes", start.nodes},
                  {"round", start.done},
                  {"rounds", start.rounds},
                  {"rounds_per_epoch", start.rounds_per_epoch},
                  {"dimension", start.dimension},
                  {"config", config_}});
}

void JsonLines::evaluated(const RunEvaluation& evaluation) {
  Json fields = {{"round", evaluation.point.round}};
  for (const RunFigure& figure : run_figures()) {
    fields[std::string(figure.info.name)] = figure.value(evaluation);
  }
  fields["nodes"] = node_lines(evaluation.nodes);
  write("evaluation", fields);
}

void JsonLines::warning(const std::string& text) { write("warning", {{"text", text}}); }

void JsonLines::ended(const Status& status) {
  write("ended", {{"ok", status.ok()}, {"text", status.ok() ? "" : status.message()}});
}

}  // namespace sotto::cli
