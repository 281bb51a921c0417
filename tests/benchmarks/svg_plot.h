/// @file Plots of measured points as one SVG file: panels beside each other, the horizontal axis logarithmic, the vertical one from 0; a
/// point is a median, its whisker goes from least to most. Knows nothing of what was measured.
#pragma once

#include "samples.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace zero::bench {

struct Point {
  double x, median, least, most;
};

struct Panel {
  std::string title, x_label, y_label;
  std::vector<Point> points;
};

class SvgPlot {
 public:
  void add(Panel panel) { panels_.push_back(std::move(panel)); }

  void save(const std::string &path) const {
    std::ofstream file(path);
    const auto rows = static_cast<double>((panels_.size() + 1) / 2);
    file << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << 2 * kWidth << ' ' << rows * kHeight
         << "' font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n";
    for (size_t i = 0; i < panels_.size(); ++i) {
      file << "<g transform='translate(" << static_cast<double>(i % 2) * kWidth << ',' << static_cast<double>(i / 2) * kHeight << ")'>\n"
           << draw(panels_[i]) << "</g>\n";
    }
    file << "</svg>\n";
  }

 private:
  static constexpr double kWidth = 440, kHeight = 300;
  static constexpr double kLeft = 60, kRight = 420, kTop = 40, kBottom = 245;

  static std::string number(double value) {
    static constexpr std::pair<double, const char *> kUnits[] = {{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}};
    char text[32];
    for (const auto &[unit, letter] : kUnits) {
      if (value < unit || value != std::floor(value)) continue;
      std::snprintf(text, sizeof text, "%.4g%s", value / unit, letter);
      return text;
    }
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
  }
  static std::string text(double x, double y, const std::string &anchor, const std::string &what, const std::string &more = "") {
    return "<text x='" + std::to_string(x) + "' y='" + std::to_string(y) + "' text-anchor='" + anchor + "' " + more + ">" + what +
           "</text>\n";
  }
  static std::string line(double x1, double y1, double x2, double y2, const std::string &color) {
    return "<line x1='" + std::to_string(x1) + "' y1='" + std::to_string(y1) + "' x2='" + std::to_string(x2) + "' y2='" +
           std::to_string(y2) + "' stroke='" + color + "'/>\n";
  }

  /// 1, 2 or 5 times a power of ten, so that about four of them make `most`.
  static double tick_of(double most) {
    const double power = std::pow(10, std::floor(std::log10(most / 4)));
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (most / (factor * power) <= 5) return factor * power;
    }
    return 10 * power;
  }

  static std::string draw(const Panel &panel) {
    const double first = std::log2(panel.points.front().x);
    const double last = std::max(std::log2(panel.points.back().x), first + 1);
    double most = 0;
    for (const Point &point : panel.points) most = std::max(most, point.most);
    const auto across = [&](double x) { return kLeft + 15 + (std::log2(x) - first) / (last - first) * (kRight - kLeft - 30); };
    const auto up = [&](double y) { return kBottom - y / (1.05 * most) * (kBottom - kTop); };
    std::string svg = text((kLeft + kRight) / 2, 22, "middle", panel.title, "font-weight='bold'");
    svg += text((kLeft + kRight) / 2, kBottom + 38, "middle", panel.x_label);
    svg += text(0, 0, "middle", panel.y_label, "transform='translate(16," + std::to_string((kTop + kBottom) / 2) + ") rotate(-90)'");
    for (double y = 0; y <= 1.05 * most; y += tick_of(most)) {
      svg += line(kLeft, up(y), kRight, up(y), y == 0 ? "#333" : "#ddd") + text(kLeft - 6, up(y) + 4, "end", number(y));
    }
    std::string path;
    for (const Point &point : panel.points) {
      const double x = across(point.x);
      svg += text(x, kBottom + 18, "middle", number(point.x)) + line(x, up(point.least), x, up(point.most), "#888");
      svg += "<circle cx='" + std::to_string(x) + "' cy='" + std::to_string(up(point.median)) + "' r='3.5' fill='#1f5fa8'/>\n";
      path += std::to_string(x) + "," + std::to_string(up(point.median)) + " ";
    }
    return svg + "<polyline points='" + path + "' fill='none' stroke='#1f5fa8'/>\n";
  }

  std::vector<Panel> panels_;
};

}  // namespace zero::bench
